// Values as bytes, for messages between ranks of one build: structures field by field, and no addresses.
#pragma once

#include "plan/ops/fields.h"
#include "plan/plan.h"

#include <cstring>
#include <map>
#include <span>

namespace redline {

template <typename T>
constexpr bool kIsPlain = std::is_arithmetic_v<T> || std::is_enum_v<T>;

class Packer {
public:
    template <typename... All>
    Packer& add(const All&... values) {
        (put(values), ...);
        return *this;
    }
    std::vector<std::byte> take() { return std::move(bytes_); }

private:
    void put_bytes(const void* from, size_t count) {
        const auto* first = static_cast<const std::byte*>(from);
        bytes_.insert(bytes_.end(), first, first + count);
    }
    template <typename T>
    void put(const T& value) {
        if constexpr (kIsPlain<T>) {
            put_bytes(&value, sizeof(value));
        } else {
            static_assert(std::is_aggregate_v<T>, "this type has no form as bytes");
            visit_fields(value, [&](const auto&... fields) { (put(fields), ...); });
        }
    }
    void put(const std::string& text) {
        put(uint64_t(text.size()));
        put_bytes(text.data(), text.size());
    }
    template <typename T>
    void put(std::span<const T> all) {
        put(uint64_t(all.size()));
        if constexpr (kIsPlain<T>) {
            put_bytes(all.data(), all.size_bytes());
        } else {
            for (const T& one : all) put(one);
        }
    }
    void put(std::span<const std::byte> all) {
        put(uint64_t(all.size()));
        put_bytes(all.data(), all.size());
    }
    template <typename T>
    void put(const std::vector<T>& all) {
        put(std::span<const T>(all));
    }
    template <typename T, size_t kSize>
    void put(const std::array<T, kSize>& all) {
        for (const T& one : all) put(one);
    }
    template <typename T>
    void put(const std::optional<T>& value) {
        put(value.has_value());
        if (value) put(*value);
    }
    template <typename Key, typename T>
    void put(const std::map<Key, T>& all) {
        put(uint64_t(all.size()));
        for (const auto& [key, value] : all) add(key, value);
    }
    void put(const Op& op) {
        put(uint32_t(op.index()));
        std::visit([this](const auto& one) { put(one); }, op);
    }
    void put(const CacheTypes& types) { add(types.keys, types.values, types.rotate); }
    void put(const Tensor& tensor) { add(tensor.name, std::string(tensor.format->name), tensor.shape); }

    std::vector<std::byte> bytes_;
};

class Unpacker {
public:
    explicit Unpacker(std::span<const std::byte> bytes) : rest_(bytes) {}

    template <typename... All>
    Unpacker& get(All&... values) {
        (take(values), ...);
        return *this;
    }
    template <typename T>
    T next() {
        T value{};
        take(value);
        return value;
    }
    // An error where bytes lacked, or had no meaning; the values are then those of an empty structure.
    Status status() const {
        if (fault_) return error("a message of another rank cannot be read");
        return {};
    }

private:
    bool take_bytes(void* to, size_t count) {
        if (fault_ || count > rest_.size()) {
            fault_ = true;
            return false;
        }
        if (count > 0) std::memcpy(to, rest_.data(), count);
        rest_ = rest_.subspan(count);
        return true;
    }
    // The number of elements that follow, each of at least so many bytes.
    size_t take_count(size_t least) {
        const auto count = next<uint64_t>();
        if (count > rest_.size() / std::max<size_t>(1, least)) fault_ = true;
        return fault_ ? 0 : size_t(count);
    }
    template <typename T>
    void take(T& value) {
        if constexpr (std::is_same_v<T, bool>) {
            value = next<uint8_t>() != 0;
        } else if constexpr (kIsPlain<T>) {
            if (!take_bytes(&value, sizeof(value))) value = T{};
        } else {
            visit_fields(value, [&](auto&... fields) { (take(fields), ...); });
        }
    }
    void take(std::string& text) {
        text.resize(take_count(1));
        take_bytes(text.data(), text.size());
    }
    template <typename T>
    void take(std::vector<T>& all) {
        all.clear();
        all.resize(take_count(kIsPlain<T> ? sizeof(T) : 1));
        if constexpr (kIsPlain<T>) {
            take_bytes(all.data(), all.size() * sizeof(T));
        } else {
            for (T& one : all) take(one);
        }
    }
    void take(std::vector<std::byte>& all) {
        all.resize(take_count(1));
        take_bytes(all.data(), all.size());
    }
    template <typename T, size_t kSize>
    void take(std::array<T, kSize>& all) {
        for (T& one : all) take(one);
    }
    template <typename T>
    void take(std::optional<T>& value) {
        value.reset();
        if (next<bool>()) take(value.emplace());
    }
    template <typename Key, typename T>
    void take(std::map<Key, T>& all) {
        all.clear();
        for (size_t left = take_count(1); left > 0 && !fault_; --left) {
            const Key key = next<Key>();
            take(all[key]);
        }
    }
    template <size_t kAt = 0>
    void take_op(uint32_t kind, Op& op) {
        if constexpr (kAt < std::variant_size_v<Op>) {
            if (kind != kAt) return take_op<kAt + 1>(kind, op);
            take(op.emplace<kAt>());
        } else {
            fault_ = true;
        }
    }
    void take(Op& op) { take_op(next<uint32_t>(), op); }
    void take(CacheTypes& types) { get(types.keys, types.values, types.rotate); }
    void take(Tensor& tensor) {
        std::string format;
        get(tensor.name, format, tensor.shape);
        tensor.format = find_format(format);
        if (!tensor.format) fault_ = true;
    }

    std::span<const std::byte> rest_;
    bool fault_ = false;
};

// A plan, lowered or not. What comes back is checked op by op.
void pack_plan(Packer& out, const Plan& plan);
Result<Plan> unpack_plan(Unpacker& in);

}  // namespace redline
