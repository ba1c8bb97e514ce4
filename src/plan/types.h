// What ops and kernels name alike.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace redline {

enum class Act : uint8_t { silu, gelu_tanh };

// How keys and values are stored.
enum class CacheType : uint8_t { f16, q8_0, f32 };
std::string_view cache_type_name(CacheType type);

// Keys and values of some kv heads, a row per token and head. Token p lies in row p % capacity: with a
// window, further back than which nobody looks, there need not be a row for each.
struct CacheInfo {
    uint32_t kv_heads = 0;
    uint32_t head_dim = 0;
    uint64_t capacity = 0;  // rows
    CacheType type = CacheType::f16;
    uint64_t window = 0;  // 0: none

    // Bytes of one token in one kv head: its key's elements and their scales, its value's elements and
    // scales.
    std::array<uint64_t, 4> planes() const;
    uint64_t row_bytes() const;  // all of them
    uint64_t bytes() const { return row_bytes() * kv_heads * capacity; }
    bool operator==(const CacheInfo&) const = default;
};
// Rings have a multiple of so many rows, so that no tile of keys lies across their end.
constexpr uint64_t kCacheRowsAlign = 256;
uint64_t cache_bytes(std::span<const CacheInfo> caches);

}  // namespace redline
