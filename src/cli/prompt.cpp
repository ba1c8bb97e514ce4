#include "cli/prompt.h"

#include "base/file.h"
#include "base/os/standard_input.h"
#include "base/os/terminal.h"
#include "cli/command.h"
#include "cli/job.h"
#include "cli/options/sampling_options.h"
#include "cli/terminal/terminal.h"
#include "text/tokens/unicode.h"

namespace redline::cli {

static constexpr uint64_t kMostText = uint64_t(1) << 30;

Result<std::string> read_standard_input() {
    std::error_code closed;
    os::info_of(os::kStandardInput, closed);
    if (closed) return std::string();
    return read_stream(os::kStandardInput, "standard input", kMostText);
}

void find_stray_bytes(std::string_view text, const std::string& where, std::vector<StrayBytes>& found) {
    StrayBytes stray{where};
    for (size_t at = 0; at < text.size();) {
        const Utf8Step step = utf8_step(text, at);
        if (step.kind != Utf8Step::Kind::character) {
            if (stray.count == 0) {
                stray.offset = at;
                stray.first = static_cast<uint8_t>(text[at]);
            }
            stray.count += step.bytes;
        }
        at += step.bytes;
    }
    if (stray.count > 0) found.push_back(std::move(stray));
}

// Surrogates without their other half become U+FFFD.
static std::string from_utf16(std::string_view bytes, bool big_endian) {
    const auto unit = [&](size_t index) -> char32_t {
        const auto low = static_cast<uint8_t>(bytes[2 * index + (big_endian ? 1 : 0)]);
        const auto high = static_cast<uint8_t>(bytes[2 * index + (big_endian ? 0 : 1)]);
        return char32_t(high) << 8 | low;
    };
    std::string out;
    const size_t units = bytes.size() / 2;
    for (size_t i = 0; i < units; ++i) {
        char32_t code = unit(i);
        const bool surrogate = code >= 0xD800 && code < 0xE000;
        const char32_t next = surrogate && i + 1 < units ? unit(i + 1) : 0;
        if (surrogate && code < 0xDC00 && next >= 0xDC00 && next < 0xE000) {
            code = 0x10000 + ((code - 0xD800) << 10) + (next - 0xDC00);
            ++i;
        } else if (surrogate) {
            code = 0xFFFD;
        }
        append_utf8(out, code);
    }
    return out;
}

Result<std::string> as_utf8(std::string text, const std::string& where) {
    if (text.starts_with("\xEF\xBB\xBF")) {
        note(fmt::format("{}: the byte order mark at its beginning is left out", where));
        return text.substr(3);
    }
    const bool little = text.starts_with("\xFF\xFE"), big = text.starts_with("\xFE\xFF");
    if (!little && !big) {
        // A model's file or a picture would be tokenized for minutes.
        if (const size_t at = text.find('\0'); at != text.npos)
            return error("{} is no text: its byte {} is 0", where, at + 1);
        return text;
    }
    if (text.size() % 2 != 0)
        return error("{} begins like UTF-16 and has an odd number of bytes: write it as UTF-8", where);
    note(fmt::format("{} is UTF-16 and is read as such", where));
    return from_utf16(std::string_view(text).substr(2), big);
}

Result<std::string> read_prompt_file(const std::string& path) {
    if (path == "-") return as_utf8(RL_TRY(read_standard_input()), "standard input");
    return as_utf8(RL_TRY(read_text_file(path, kMostText)), path);
}

static std::string without_last_line_end(std::string text) {
    if (text.ends_with('\n')) text.pop_back();
    if (text.ends_with('\r')) text.pop_back();
    return text;
}

// True where standard input is read although the prompt has another part. A file is, unless somebody has read
// a part of it, as "while read" has. A pipe or socket is, unless it is the parent's, or neither data nor its
// end come for a while: one that is open for ever must not block a prompt that is complete.
static bool is_for_prompt() {
    constexpr int kPatienceMs = 3000;  // a program that makes the data may take a moment to start
    constexpr int kPatienceInJobMs = 300;
    std::error_code closed;
    const os::FileInfo input = os::info_of(os::kStandardInput, closed);
    if (closed) return false;
    if (input.kind == os::FileKind::regular) {
        const uint64_t at = os::standard_input_position();
        if (at > 0 && at < input.size)
            note(
                "the file at standard input is being read by another program, and left to it; -f - reads it");
        return at == 0;
    }
    if (input.kind != os::FileKind::pipe) return true;
    if (os::is_parents_standard_input(input)) {
        if (os::has_input(os::kStandardInput))
            note("standard input is the pipe of the calling program, and left to it; -f - reads it");
        return false;
    }
    // mpirun gives rank 0 a pipe that stays open as long as the terminal does.
    if (is_in_job()) return os::is_ready(os::kStandardInput, kPatienceInJobMs);
    if (os::is_ready(os::kStandardInput, kPatienceMs)) return true;
    note(fmt::format(
        "standard input is an open pipe without data for {} s: the prompt goes without it; -f - waits",
        kPatienceMs / 1000));
    return false;
}

Result<std::optional<std::string>> gather_prompt(const PromptSource& source, std::vector<StrayBytes>* stray) {
    std::optional<std::string> prompt;
    const auto add = [&](const std::string& part, const std::string& where) {
        if (stray) find_stray_bytes(part, where, *stray);
        prompt = prompt ? *prompt + "\n" + part : part;
    };
    if (source.has_text) add(source.escapes ? unescape(source.text) : source.text, "-p");
    if (!source.file.empty() && source.file != "-")
        add(without_last_line_end(RL_TRY(read_prompt_file(source.file))), source.file);
    const bool may_read = source.file.empty() || source.combines;
    if (source.file == "-" ||
        (may_read && !is_terminal(os::kStandardInput) && (!prompt || is_for_prompt()))) {
        const std::string input = without_last_line_end(RL_TRY(read_prompt_file("-")));
        if (!input.empty() || source.file == "-") add(input, "standard input");
    }
    return prompt;
}

}  // namespace redline::cli
