// Recognises files that are not GGUF: most are another format of the same model, or a web page or a pointer
// that was saved in its place.
#include "gguf/header.h"

#include <algorithm>

namespace redline {

namespace {

using std::string_view_literals::operator""sv;

struct Magic {
    std::string_view bytes;
    const char* explanation;
};

constexpr const char* kOldGgml =
    "is a ggml file from before GGUF (2023): download or convert the model as GGUF";
constexpr const char* kPacked = "is a compressed file: unpack it first";
constexpr const char* kWebPage =
    "is a web page, not a model: fetch the file itself (the \"resolve\" link, not the \"blob\" one)";

// The old ggml magics are 32-bit numbers, so that their letters are reversed in the file.
constexpr Magic kMagics[] = {
    {"tjgg"sv, kOldGgml},
    {"fmgg"sv, kOldGgml},
    {"lmgg"sv, kOldGgml},
    {"algg"sv, "is a ggml LoRA adapter from before GGUF (2023), which is not supported"},
    {"PK\x03\x04"sv, "is a zip archive, probably a PyTorch checkpoint: convert it to GGUF first"},
    {"\x80\x02"sv, "is a Python pickle, probably a PyTorch checkpoint: convert it to GGUF first"},
    {"version https://git-lfs"sv,
     "is a git-lfs pointer, not the model: run \"git lfs pull\" or download the file itself"},
    {"\x1F\x8B"sv, kPacked},
    {"\x28\xB5\x2F\xFD"sv, kPacked},
    {"\xFD"
     "7zXZ"sv,
     kPacked},
    {"<!doctype"sv, kWebPage},
    {"<html"sv, kWebPage},
    {"{"sv, "is a JSON text, not a model: it may be an error message saved by a download"},
    {"Entry not found"sv, "is an error message saved by a download, not a model"},
    {"Invalid "sv, "is an error message saved by a download, not a model"},
};

std::string_view without_blanks(std::string_view text) {
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    while (!text.empty() && (text[0] == ' ' || text[0] == '\n' || text[0] == '\r' || text[0] == '\t'))
        text.remove_prefix(1);
    return text;
}

bool starts_with_any_case(std::string_view text, std::string_view start) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; };
    return text.size() >= start.size() && std::equal(start.begin(), start.end(), text.begin(),
                                                     [&](char a, char b) { return lower(a) == lower(b); });
}

// A safetensors file begins with a 64-bit header length and a JSON object.
bool is_safetensors(std::string_view start, uint64_t file_size) {
    if (start.size() < 10 || start[8] != '{') return false;
    uint64_t length;
    std::memcpy(&length, start.data(), sizeof(length));
    return length >= 2 && length <= file_size;
}

}  // namespace

Status check_is_gguf(Cursor& in) {
    const auto bytes = RL_TRY(in.peek(64));
    const std::string_view start(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (start.starts_with("GGUF")) return {};
    if (start.empty()) return in.fail("is empty: the download may not have begun");
    if (is_safetensors(start, in.file_size()))
        return in.fail("is a safetensors file: convert it to GGUF first");
    for (const Magic& magic : kMagics)
        if (starts_with_any_case(start, magic.bytes) ||
            starts_with_any_case(without_blanks(start), magic.bytes))
            return in.fail("{}", magic.explanation);
    if (std::string_view("GGUF").starts_with(start))
        return in.fail("has only {} bytes: the file is cut short", start.size());
    if (start.find_first_not_of('\0') == std::string_view::npos)
        return in.fail("begins with zeros: the download is probably incomplete");
    return in.fail("is not a GGUF file: it does not begin with \"GGUF\"");
}

}  // namespace redline
