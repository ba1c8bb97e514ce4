// Builds GGUF images in memory: whole ones for tiny models, and broken ones for the reader's tests. The parts
// are plain members, so that a test can change any of them, or the bytes afterwards, before they are parsed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace redline::test {

using Bytes = std::vector<std::byte>;

template <typename T>
void append(Bytes& out, const T& number) {
    static_assert(std::is_arithmetic_v<T>);
    const size_t at = out.size();
    out.resize(at + sizeof(T));
    std::memcpy(out.data() + at, &number, sizeof(T));
}

inline void append_string(Bytes& out, std::string_view text) {
    append(out, uint64_t(text.size()));
    const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
    out.insert(out.end(), bytes, bytes + text.size());
}

template <typename T>
Bytes bytes_of(const std::vector<T>& values) {
    const auto view = std::as_bytes(std::span(values));
    return Bytes(view.begin(), view.end());
}

// The id of a C++ type as a metadata value.
template <typename T>
constexpr uint32_t value_type() {
    if constexpr (std::is_same_v<T, bool>)
        return 7;
    else if constexpr (std::is_same_v<T, float>)
        return 6;
    else if constexpr (std::is_same_v<T, double>)
        return 12;
    else if constexpr (!std::is_arithmetic_v<T>)
        return 8;
    else if constexpr (sizeof(T) == 8)
        return std::is_signed_v<T> ? 11 : 10;
    else
        return uint32_t(sizeof(T) == 1 ? 0 : sizeof(T)) + (std::is_signed_v<T> ? 1 : 0);
}

class GgufBuilder {
public:
    struct Key {
        std::string name;
        uint32_t type;
        Bytes value;  // as in the file, after the type
    };
    struct Entry {
        std::string name;
        std::vector<uint64_t>
            dims;  // fastest first, as in the file: a matrix of (rows, cols) is {cols, rows}
        uint32_t type;
        Bytes data;
        std::optional<uint64_t> offset = {};  // written in the directory in place of the true one
    };

    uint32_t version = 3;
    uint64_t alignment = 32;  // of the data; add the key general.alignment too when it is another
    std::vector<Key> keys;
    std::vector<Entry> tensors;
    std::optional<uint64_t> claimed_keys, claimed_tensors;  // written in place of the true counts
    bool pad_last = true;  // whether the last tensor is padded to the alignment

    // A number, a bool or a text.
    template <typename T>
    GgufBuilder& add(const std::string& key, const T& value) {
        Bytes bytes;
        if constexpr (std::is_arithmetic_v<T>)
            append(bytes, value);
        else
            append_string(bytes, value);
        return add_raw(key, value_type<T>(), std::move(bytes));
    }
    // An array of them.
    template <typename T>
    GgufBuilder& add(const std::string& key, const std::vector<T>& values) {
        Bytes bytes;
        append(bytes, value_type<T>());
        append(bytes, uint64_t(values.size()));
        for (const auto& value : values) {
            if constexpr (std::is_arithmetic_v<T>)
                append(bytes, value);
            else
                append_string(bytes, value);
        }
        return add_raw(key, 9, std::move(bytes));
    }
    GgufBuilder& add_raw(const std::string& key, uint32_t type, Bytes value) {
        keys.push_back({key, type, std::move(value)});
        return *this;
    }
    GgufBuilder& tensor(const std::string& name, std::vector<uint64_t> dims, uint32_t type, Bytes data) {
        tensors.push_back({name, std::move(dims), type, std::move(data)});
        return *this;
    }
    GgufBuilder& tensor_f32(const std::string& name, std::vector<uint64_t> dims,
                            const std::vector<float>& values) {
        return tensor(name, std::move(dims), 0, bytes_of(values));
    }

    // Everything before the padding of the data section.
    Bytes header() const {
        Bytes out;
        for (const char letter : {'G', 'G', 'U', 'F'}) append(out, letter);
        append(out, version);
        append(out, claimed_tensors.value_or(tensors.size()));
        append(out, claimed_keys.value_or(keys.size()));
        for (const Key& key : keys) {
            append_string(out, key.name);
            append(out, key.type);
            out.insert(out.end(), key.value.begin(), key.value.end());
        }
        uint64_t offset = 0;
        for (const Entry& entry : tensors) {
            append_string(out, entry.name);
            append(out, uint32_t(entry.dims.size()));
            for (const uint64_t dim : entry.dims) append(out, dim);
            append(out, entry.type);
            append(out, entry.offset.value_or(offset));
            offset += padded(entry.data.size());
        }
        return out;
    }

    Bytes bytes() const {
        Bytes out = header();
        if (tensors.empty()) return out;
        out.resize(padded(out.size()));
        for (const Entry& entry : tensors) {
            out.insert(out.end(), entry.data.begin(), entry.data.end());
            if (&entry != &tensors.back() || pad_last) out.resize(padded(out.size()));
        }
        return out;
    }

    void save(const std::string& path) const { save_bytes(path, bytes()); }

    static void save_bytes(const std::string& path, std::span<const std::byte> bytes) {
        std::ofstream file(path, std::ios::binary | std::ios::trunc);
        file.write(reinterpret_cast<const char*>(bytes.data()), std::streamsize(bytes.size()));
    }

private:
    uint64_t padded(uint64_t size) const { return (size + alignment - 1) / alignment * alignment; }
};

}  // namespace redline::test
