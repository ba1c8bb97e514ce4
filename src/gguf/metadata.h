// The key-value part of a GGUF file. Files use any integer width for a key, so readers ask for the type that
// they need and get it if the value fits; a value of another kind is an error that names the key.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace redline {

struct MetadataValue {
    using Integers = std::vector<int64_t>;
    using Floats = std::vector<float>;
    using Bools = std::vector<bool>;
    using Strings = std::vector<std::string>;
    // u64 values above INT64_MAX are kept as uint64_t (in arrays they are an error); f32 and f64 scalars as
    // double.
    std::variant<int64_t, uint64_t, double, bool, std::string, Integers, Floats, Bools, Strings> value;
    uint32_t gguf_type = 0;     // value type id in the file
    uint32_t element_type = 0;  // of arrays
};

class Metadata {
public:
    Status add(std::string key, MetadataValue value);  // a duplicate key is an error
    bool has(std::string_view key) const { return find(key) != nullptr; }
    const MetadataValue* find(std::string_view key) const;
    size_t size() const { return entries_.size(); }
    // In file order.
    std::span<const std::pair<std::string, MetadataValue>> entries() const { return entries_; }

    // For an absent key the form without a fallback returns an error, the other the fallback. A wrong kind or
    // range is an error. An integer must not be negative; a real may be stored as an integer and must be
    // finite as a float.
    Result<uint64_t> integer(std::string_view key) const;
    Result<uint64_t> integer(std::string_view key, uint64_t fallback) const;
    Result<float> real(std::string_view key) const;
    Result<float> real(std::string_view key, float fallback) const;
    Result<bool> boolean(std::string_view key, bool fallback) const;
    Result<std::string> text(std::string_view key) const;
    Result<std::string> text(std::string_view key, std::string fallback) const;
    // A scalar is repeated `count` times; an array must have `count` entries (of bools: 0 and 1). For an
    // absent key `fallback` is repeated; without one it is an error.
    Result<std::vector<uint64_t>> integers(std::string_view key, size_t count,
                                           std::optional<uint64_t> fallback) const;

    // Whole arrays; null when absent or of another kind.
    const std::vector<std::string>* strings(std::string_view key) const;
    const std::vector<int64_t>* integers(std::string_view key) const;
    const std::vector<float>* floats(std::string_view key) const;

private:
    std::vector<std::pair<std::string, MetadataValue>> entries_;
    std::map<std::string, uint32_t, std::less<>> by_key_;  // indices into entries_
};

}  // namespace redline
