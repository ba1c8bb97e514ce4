#include "gguf/header.h"
#include "gguf/value_types.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace redline {

namespace {

using namespace gguf_type;

constexpr uint64_t kMaxKey = 65535;
constexpr uint64_t kMaxString = uint64_t(64) << 20;  // chat templates are below 64 KiB, charsmaps about 1 MB
constexpr uint64_t kMaxCount = uint64_t(1) << 30;
constexpr size_t kChunk = 16384;  // elements: large arrays pass through the window in pieces

// Calls `read` with a value of the number type with the id `type`.
template <typename F>
Status with_number_type(const Cursor& in, uint32_t type, F&& read) {
    switch (type) {
        case 0:
            return read(uint8_t{});
        case 1:
            return read(int8_t{});
        case 2:
            return read(uint16_t{});
        case 3:
            return read(int16_t{});
        case 4:
            return read(uint32_t{});
        case 5:
            return read(int32_t{});
        case 6:
            return read(float{});
        case 10:
            return read(uint64_t{});
        case 11:
            return read(int64_t{});
        case 12:
            return read(double{});
        default:
            return in.fail("has the unknown value type {}", type);
    }
}

Result<bool> to_bool(const Cursor& in, std::byte byte) {
    if (uint8_t(byte) > 1) return in.fail("has a boolean stored as {}, it must be 0 or 1", uint8_t(byte));
    return byte == std::byte{1};
}

Status read_scalar(Cursor& in, MetadataValue& out) {
    if (out.gguf_type == kString) {
        out.value = std::string(RL_TRY(in.string(kMaxString)));
        return {};
    }
    if (out.gguf_type == kBool) {
        const auto byte = RL_TRY(in.take(1));
        out.value = RL_TRY(to_bool(in, byte[0]));
        return {};
    }
    return with_number_type(in, out.gguf_type, [&](auto sample) -> Status {
        using T = decltype(sample);
        const T number = RL_TRY(in.number<T>());
        if constexpr (std::is_floating_point_v<T>) {
            out.value = double(number);
        } else {
            if (std::in_range<int64_t>(number))
                out.value = int64_t(number);
            else
                out.value = uint64_t(number);
        }
        return {};
    });
}

Status read_strings(Cursor& in, uint64_t count, MetadataValue::Strings& out) {
    for (uint64_t i = 0; i < count; ++i) out.emplace_back(RL_TRY(in.string(kMaxString)));
    return {};
}

Status read_bools(Cursor& in, uint64_t count, MetadataValue::Bools& out) {
    while (out.size() < count) {
        const auto bytes = RL_TRY(in.take(std::min<uint64_t>(count - out.size(), kChunk)));
        for (const std::byte byte : bytes) out.push_back(RL_TRY(to_bool(in, byte)));
    }
    return {};
}

template <typename T, typename Kept>
Status read_numbers(Cursor& in, uint64_t count, std::vector<Kept>& out) {
    while (out.size() < count) {
        const size_t chunk = size_t(std::min<uint64_t>(count - out.size(), kChunk));
        const auto bytes = RL_TRY(in.take(chunk * sizeof(T)));
        for (size_t i = 0; i < chunk; ++i) {
            T number;
            std::memcpy(&number, bytes.data() + i * sizeof(T), sizeof(T));
            if constexpr (std::is_same_v<T, uint64_t>)
                if (!std::in_range<int64_t>(number))
                    return in.fail("has the array entry {}, which is above {}", number,
                                   std::numeric_limits<int64_t>::max());
            out.push_back(Kept(number));
        }
    }
    return {};
}

// The fewest bytes that an element can take.
uint64_t least_bytes(uint32_t element_type) {
    constexpr uint8_t kBytes[kTypes] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 0, 8, 8, 8};
    return kBytes[element_type];
}

Status read_array(Cursor& in, MetadataValue& out) {
    out.element_type = RL_TRY(in.number<uint32_t>());
    if (out.element_type == kArray) return in.fail("is an array of arrays, which is not supported");
    if (out.element_type >= kTypes)
        return in.fail("is an array of the unknown value type {}", out.element_type);
    const uint64_t count = RL_TRY(in.number<uint64_t>());
    if (count > in.remaining() / least_bytes(out.element_type))
        return in.fail("claims an array of {} entries at byte {} but {} bytes remain", count, in.position(),
                       in.remaining());
    if (count > kMaxCount)
        return in.fail("is an array of {} entries, the most accepted is {}", count, kMaxCount);
    if (out.element_type == kString)
        return read_strings(in, count, out.value.emplace<MetadataValue::Strings>());
    if (out.element_type == kBool) return read_bools(in, count, out.value.emplace<MetadataValue::Bools>());
    return with_number_type(in, out.element_type, [&](auto sample) -> Status {
        using T = decltype(sample);
        if constexpr (std::is_floating_point_v<T>)
            return read_numbers<T>(in, count, out.value.emplace<MetadataValue::Floats>());
        else
            return read_numbers<T>(in, count, out.value.emplace<MetadataValue::Integers>());
    });
}

}  // namespace

Result<Metadata> read_metadata(Cursor& in, uint64_t keys) {
    Metadata metadata;
    for (uint64_t i = 0; i < keys; ++i) {
        in.set_context(fmt::format("metadata key {} of {}", i + 1, keys));
        std::string key(RL_TRY(in.string(kMaxKey)));
        RL_TRY(check_name(in, key));
        in.set_context(fmt::format("key {}", key));
        MetadataValue value;
        value.gguf_type = RL_TRY(in.number<uint32_t>());
        RL_TRY(value.gguf_type == kArray ? read_array(in, value) : read_scalar(in, value));
        const Status added = metadata.add(std::move(key), std::move(value));
        if (!added) return in.fail("occurs twice");
    }
    return metadata;
}

}  // namespace redline
