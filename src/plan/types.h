// Types that ops and kernels share.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace redline {

// The function of a gated block: act(gate) * up. swiglu_clamped, of gpt-oss, limits both: g * sigmoid(1.702
// g) * (u + 1) with g = min(gate, 7) and u = clamp(up, -7, 7).
enum class Act : uint8_t { silu, gelu_tanh, swiglu_clamped };

// The type of cached keys, or values. Files of caches hold the numbers.
enum class CacheType : uint8_t { f16, q8_0, f32, bf16, q5_1, q5_0, q4_1, q4_0, iq4_nl };
constexpr CacheType kCacheTypes[] = {CacheType::f32,  CacheType::f16,  CacheType::bf16,
                                     CacheType::q8_0, CacheType::q5_1, CacheType::q5_0,
                                     CacheType::q4_1, CacheType::q4_0, CacheType::iq4_nl};
std::string_view cache_type_name(CacheType type);

constexpr uint32_t kCacheBlock = 32;  // elements that share the scales of a quantized type

// A quantized type has codes of 8 or 4 bits; of 4 bits, elements i and i + 16 of a block share a byte, the
// first in its lower half. `highs`: the fifth bits are in 4 more bytes of a block, element i's being bit i.
// `scales`: halfs of a block, its scale and, if there are two, its minimum.
struct CacheCode {
    uint32_t bits;
    bool highs = false;
    uint32_t scales = 0;

    bool is_quantized() const { return scales > 0; }
};
inline constexpr CacheCode kCacheCodes[] = {
    {16}, {8, false, 1}, {32}, {16}, {4, true, 2}, {4, true, 1}, {4, false, 2}, {4, false, 1}, {4, false, 1}};
constexpr const CacheCode& cache_code(CacheType type) {
    return kCacheCodes[size_t(type)];
}

// The types of keys and of values.
struct CacheTypes {
    CacheType keys = CacheType::f16;
    CacheType values = CacheType::f16;
    // Keys and values of fewer than 8 bits are rotated before they are stored, see Hadamard.
    bool rotate = true;

    constexpr CacheTypes() = default;
    constexpr CacheTypes(CacheType both) : keys(both), values(both) {}
    constexpr CacheTypes(CacheType of_keys, CacheType of_values, bool rotates = true)
        : keys(of_keys), values(of_values), rotate(rotates) {}
    constexpr bool are(CacheType type) const { return keys == type && values == type; }
    constexpr bool operator==(const CacheTypes&) const = default;
};
// "f16", or "q8_0/q4_0": keys, then values.
std::string cache_types_name(CacheTypes types);

// Caches that several sequences share are divided into pages of so many rows, and a sequence has a list of
// pages. Rings consist of whole pages, so that no tile of keys crosses their end.
constexpr uint64_t kPageRows = 256;

// Keys and values of some kv heads, a row per token and head. Token p of a sequence lies in row p %
// sequence_rows of the sequence's rows: with a window, further back than which nobody looks, there need not
// be a row for each token. With a ratio, a block of so many tokens has one row together, which its last token
// stores; then a page has as many fewer rows.
// A cache can also hold states: a sequence has one whatever its length, rewritten by every step. Then a row
// is a whole state, no row belongs to a token, and only capacity and state_floats have a meaning.
struct CacheInfo {
    uint32_t kv_heads = 0;
    uint32_t head_dim = 0;
    uint64_t capacity = 0;  // rows, for all sequences
    CacheTypes types = {};
    uint64_t window = 0;         // 0: none
    uint64_t sequence_rows = 0;  // most rows of one sequence; with a ratio, the tokens of those rows
    uint32_t first_page = 0;     // in a sequence's list: caches that need the same rows share pages
    uint64_t state_floats = 0;   // floats of a state; 0: the cache holds keys and values
    // > 0: the values are the first `rank` elements of each key, a latent that all heads share.
    uint32_t rank = 0;
    uint32_t ratio = 1;  // tokens of a row; whole blocks are a page
    // Keys have more bits than those of the plan's other caches, and are rotated as these are.
    bool keys_widened = false;

    bool is_state() const { return state_floats > 0; }
    uint64_t tokens() const { return capacity * ratio; }  // the tokens of all rows
    // The row of a position of a sequence with these pages; without pages, of the only sequence, which has
    // the first rows.
    uint64_t row_of(uint64_t position, std::span<const uint32_t> pages) const {
        const uint64_t local = position % sequence_rows;
        return (pages.empty() ? local
                              : pages[first_page + local / kPageRows] * kPageRows + local % kPageRows) /
               ratio;
    }
    // The most pages of a sequence in this cache.
    uint32_t pages() const { return uint32_t((sequence_rows + kPageRows - 1) / kPageRows); }

    // The elements that are rotated together before they are stored; 0: none are.
    uint32_t key_rotation() const;
    uint32_t value_rotation() const;
    bool rotates() const { return key_rotation() > 0 || value_rotation() > 0; }

    // Bytes of one token in one kv head: the key's codes or elements, their high bits and their scales, then
    // the same of the value.
    std::array<uint64_t, 6> planes() const;
    uint64_t row_bytes() const;  // all of them
    uint64_t bytes() const { return row_bytes() * kv_heads * capacity; }
    bool operator==(const CacheInfo&) const = default;
};
// The number of entries in a sequence's list of pages.
uint32_t page_entries(std::span<const CacheInfo> caches);
uint64_t cache_bytes(std::span<const CacheInfo> caches);

}  // namespace redline
