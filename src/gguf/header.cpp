#include "gguf/header.h"

#include <algorithm>
#include <bit>

namespace redline {

namespace {

constexpr uint64_t kMaxAlignment = uint64_t(1) << 20;
// The smallest entry: name length, one character, type, one byte.
constexpr uint64_t kLeastKeyBytes = 8 + 1 + 4 + 1;
// The smallest tensor: name length, one character, number of dimensions, one dimension, type, offset.
constexpr uint64_t kLeastTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;

Status check_version(const Cursor& in, uint32_t version) {
    if (version == 2 || version == 3) return {};
    if (version == 1)
        return in.fail(
            "is of GGUF version 1, which only 2023 tools wrote: convert the model again, or download a newer "
            "file");
    if (version != 0 && (version & 0xFFFFu) == 0)
        return in.fail(
            "is a big-endian GGUF file: convert it to little-endian (gguf-py has gguf_convert_endian)");
    return in.fail("is of GGUF version {}, versions 2 and 3 are supported", version);
}

Status check_count(const Cursor& in, const char* what, uint64_t count, uint64_t least_bytes) {
    if (count > in.remaining() / least_bytes)
        return in.fail("claims {} {} but only {} bytes follow: the file is cut short or damaged",
                       int64_t(count), what, in.remaining());
    return {};
}

Result<uint64_t> read_alignment(const Cursor& in, const Metadata& metadata) {
    constexpr uint32_t kU32 = 4;
    constexpr const char* kKey = "general.alignment";
    const MetadataValue* stored = metadata.find(kKey);
    if (!stored) return uint64_t(32);
    if (stored->gguf_type != kU32)
        return in.fail("has {} of value type {}, it must be an unsigned 32-bit integer (type {})", kKey,
                       stored->gguf_type, kU32);
    const uint64_t alignment = RL_TRY(metadata.integer(kKey));
    if (!std::has_single_bit(alignment) || alignment > kMaxAlignment)
        return in.fail("has {} {}, it must be a power of two up to {}", kKey, alignment, kMaxAlignment);
    return alignment;
}

}  // namespace

Status check_name(const Cursor& in, std::string_view name) {
    if (name.empty()) return in.fail("has an empty name");
    const auto odd = std::find_if(name.begin(), name.end(), [](char c) { return c < 0x20 || c > 0x7E; });
    if (odd != name.end())
        return in.fail("has a name with the byte {:#04x}, only printable ASCII is accepted", uint8_t(*odd));
    return {};
}

Result<GgufHeader> read_header(Cursor& in) {
    RL_TRY(check_is_gguf(in));
    GgufHeader header;
    RL_TRY(in.number<uint32_t>());
    header.version = RL_TRY(in.number<uint32_t>());
    RL_TRY(check_version(in, header.version));
    const uint64_t tensors = RL_TRY(in.number<uint64_t>());
    const uint64_t keys = RL_TRY(in.number<uint64_t>());
    RL_TRY(check_count(in, "metadata keys", keys, kLeastKeyBytes));
    RL_TRY(check_count(in, "tensors", tensors, kLeastTensorBytes));
    header.metadata = RL_TRY(read_metadata(in, keys));
    in.set_context("");
    header.alignment = RL_TRY(read_alignment(in, header.metadata));
    header.tensors = RL_TRY(read_directory(in, tensors));
    in.set_context("");
    RL_TRY(place_tensors(in, header.tensors, header.alignment));
    return header;
}

}  // namespace redline
