#include "gguf/writer.h"

#include "gguf/value_types.h"

#include <cstring>
#include <type_traits>

namespace redline {

namespace {

using namespace gguf_type;

class Writer {
public:
    template <typename T>
    void number(T value) {
        static_assert(std::is_arithmetic_v<T>);
        append(&value, sizeof(T));
    }
    void string(std::string_view text) {
        number(uint64_t(text.size()));
        append(text.data(), text.size());
    }
    // Appends a number as the type with the id `type`.
    template <typename T>
    void as_type(uint32_t type, T value) {
        switch (type) {
            case 0:
                return number(uint8_t(value));
            case 1:
                return number(int8_t(value));
            case 2:
                return number(uint16_t(value));
            case 3:
                return number(int16_t(value));
            case kU32:
                return number(uint32_t(value));
            case 5:
                return number(int32_t(value));
            case 6:
                return number(float(value));
            case kBool:
                return number(uint8_t(value != T(0)));
            case 10:
                return number(uint64_t(value));
            case 11:
                return number(int64_t(value));
            case 12:
                return number(double(value));
            default:
                RL_CHECK(false, "metadata value type {}", type);
        }
    }
    void value(const MetadataValue& value) {
        number(value.gguf_type);
        std::visit([&](const auto& held) { write(value, held); }, value.value);
    }
    void pad(uint64_t alignment) { out_.resize(out_.size() + gguf_padding(out_.size(), alignment)); }
    std::vector<std::byte> finish() { return std::move(out_); }

private:
    void append(const void* bytes, size_t count) {
        const size_t at = out_.size();
        out_.resize(at + count);
        if (count > 0) std::memcpy(out_.data() + at, bytes, count);
    }
    void write(const MetadataValue& value, const std::string& text) {
        RL_CHECK(value.gguf_type == kString, "a text of type {}", value.gguf_type);
        string(text);
    }
    template <typename T>
    void write(const MetadataValue& value, const std::vector<T>& elements) {
        RL_CHECK(value.gguf_type == kArray, "an array of type {}", value.gguf_type);
        number(value.element_type);
        number(uint64_t(elements.size()));
        for (const auto& element : elements) {
            if constexpr (std::is_same_v<T, std::string>)
                string(element);
            else
                as_type(value.element_type, T(element));
        }
    }
    template <typename T>
    void write(const MetadataValue& value, T number) {
        as_type(value.gguf_type, number);
    }

    std::vector<std::byte> out_;
};

}  // namespace

uint64_t gguf_padding(uint64_t bytes, uint64_t alignment) {
    return (alignment - bytes % alignment) % alignment;
}

MetadataValue metadata_u32(uint32_t value) {
    MetadataValue out;
    out.value = int64_t(value);
    out.gguf_type = kU32;
    return out;
}

std::vector<std::byte> gguf_header(std::span<const MetadataEntry> metadata,
                                   std::span<const NewTensor> tensors, uint64_t alignment) {
    Writer out;
    for (const char letter : {'G', 'G', 'U', 'F'}) out.number(letter);
    out.number(uint32_t(3));
    out.number(uint64_t(tensors.size()));
    out.number(uint64_t(metadata.size()));
    for (const auto& [key, value] : metadata) {
        out.string(key);
        out.value(value);
    }
    uint64_t offset = 0;
    for (const NewTensor& tensor : tensors) {
        out.string(tensor.name);
        out.number(uint32_t(tensor.dims.size()));
        for (const uint64_t dim : tensor.dims) out.number(dim);
        out.number(tensor.type);
        out.number(offset);
        offset += tensor.bytes + gguf_padding(tensor.bytes, alignment);
    }
    out.pad(alignment);
    return out.finish();
}

}  // namespace redline
