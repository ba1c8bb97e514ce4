#include "gguf/metadata.h"

#include <cmath>

namespace redline {

Status Metadata::add(std::string key, MetadataValue value) {
    const auto [place, added] = by_key_.try_emplace(key, uint32_t(entries_.size()));
    if (!added) return error("key {} occurs twice", key);
    entries_.emplace_back(std::move(key), std::move(value));
    return {};
}

const MetadataValue* Metadata::find(std::string_view key) const {
    const auto place = by_key_.find(key);
    return place == by_key_.end() ? nullptr : &entries_[place->second].second;
}

namespace {

std::string kind_of(const MetadataValue& stored) {
    static constexpr const char* kKinds[] = {"an integer", "an integer", "a real number", "a boolean",
                                             "a text"};
    static constexpr const char* kElements[] = {"integers", "real numbers", "booleans", "texts"};
    const size_t index = stored.value.index();
    return index < std::size(kKinds) ? kKinds[index]
                                     : fmt::format("an array of {}", kElements[index - std::size(kKinds)]);
}

Error missing(std::string_view key) {
    return error("key {} is missing", key);
}

Error wrong_kind(std::string_view key, const MetadataValue& stored, std::string_view wanted) {
    return error("key {} is {}, {} is expected", key, kind_of(stored), wanted);
}

template <typename T>
const T* whole_array(const MetadataValue* stored) {
    return stored ? std::get_if<T>(&stored->value) : nullptr;
}

Result<uint64_t> not_negative(std::string_view key, int64_t value) {
    if (value < 0) return error("key {} is {}, a number that is not negative is expected", key, value);
    return uint64_t(value);
}

Status check_count(std::string_view key, size_t have, size_t count) {
    if (have != count) return error("key {} has {} entries, {} are expected", key, have, count);
    return {};
}

}  // namespace

Result<uint64_t> Metadata::integer(std::string_view key) const {
    const MetadataValue* stored = find(key);
    if (!stored) return missing(key);
    if (const auto* value = std::get_if<int64_t>(&stored->value)) return not_negative(key, *value);
    if (const auto* value = std::get_if<uint64_t>(&stored->value)) return *value;
    return wrong_kind(key, *stored, "an integer");
}

Result<uint64_t> Metadata::integer(std::string_view key, uint64_t fallback) const {
    if (!has(key)) return fallback;
    return integer(key);
}

Result<float> Metadata::real(std::string_view key) const {
    const MetadataValue* stored = find(key);
    if (!stored) return missing(key);
    float real;
    if (const auto* value = std::get_if<double>(&stored->value)) {
        real = float(*value);
    } else if (const auto* whole = std::get_if<int64_t>(&stored->value)) {
        real = float(*whole);
    } else if (const auto* large = std::get_if<uint64_t>(&stored->value)) {
        real = float(*large);
    } else {
        return wrong_kind(key, *stored, "a real number");
    }
    if (!std::isfinite(real)) return error("key {} is {}, a finite number is expected", key, real);
    return real;
}

Result<float> Metadata::real(std::string_view key, float fallback) const {
    if (!has(key)) return fallback;
    return real(key);
}

Result<bool> Metadata::boolean(std::string_view key, bool fallback) const {
    const MetadataValue* stored = find(key);
    if (!stored) return fallback;
    if (const auto* value = std::get_if<bool>(&stored->value)) return *value;
    return wrong_kind(key, *stored, "a boolean");
}

Result<std::string> Metadata::text(std::string_view key) const {
    const MetadataValue* stored = find(key);
    if (!stored) return missing(key);
    if (const auto* value = std::get_if<std::string>(&stored->value)) return *value;
    return wrong_kind(key, *stored, "a text");
}

Result<std::string> Metadata::text(std::string_view key, std::string fallback) const {
    if (!has(key)) return fallback;
    return text(key);
}

Result<std::vector<uint64_t>> Metadata::integers(std::string_view key, size_t count,
                                                 std::optional<uint64_t> fallback) const {
    const MetadataValue* stored = find(key);
    if (!stored && fallback) return std::vector<uint64_t>(count, *fallback);
    if (!stored) return missing(key);
    if (const auto* bools = std::get_if<MetadataValue::Bools>(&stored->value)) {
        RL_TRY(check_count(key, bools->size(), count));
        return std::vector<uint64_t>(bools->begin(), bools->end());
    }
    const auto* array = std::get_if<MetadataValue::Integers>(&stored->value);
    if (!array) {
        const uint64_t scalar = RL_TRY(integer(key));
        return std::vector<uint64_t>(count, scalar);
    }
    RL_TRY(check_count(key, array->size(), count));
    std::vector<uint64_t> values;
    values.reserve(count);
    for (const int64_t value : *array) values.push_back(RL_TRY(not_negative(key, value)));
    return values;
}

const std::vector<std::string>* Metadata::strings(std::string_view key) const {
    return whole_array<MetadataValue::Strings>(find(key));
}

const std::vector<int64_t>* Metadata::integers(std::string_view key) const {
    return whole_array<MetadataValue::Integers>(find(key));
}

const std::vector<float>* Metadata::floats(std::string_view key) const {
    return whole_array<MetadataValue::Floats>(find(key));
}

}  // namespace redline
