// What ops and kernels name alike.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace redline {

// What a gated block does with its two products: act(gate) * up. swiglu_clamped, of gpt-oss, limits both:
// g * sigmoid(1.702 g) * (u + 1) with g = min(gate, 7) and u = clamp(up, -7, 7).
enum class Act : uint8_t { silu, gelu_tanh, swiglu_clamped };

// How keys and values are stored.
enum class CacheType : uint8_t { f16, q8_0, f32 };
std::string_view cache_type_name(CacheType type);

// Caches that several sequences share are divided into pages of so many rows, and a sequence has a list of
// pages. Rings have whole pages, so that no tile of keys lies across their end.
constexpr uint64_t kPageRows = 256;

// Keys and values of some kv heads, a row per token and head. Token p of a sequence lies in row
// p % sequence_rows of those that the sequence has: with a window, further back than which nobody looks,
// there need not be a row for each. With a ratio, so many tokens, a block, have one row together, which its
// last token stores; then a page has as many fewer rows.
// Or states, of which a sequence has one whatever its length, rewritten by every step: then a row is a whole
// state, no row belongs to a token, and only capacity and state_floats mean anything.
struct CacheInfo {
    uint32_t kv_heads = 0;
    uint32_t head_dim = 0;
    uint64_t capacity = 0;  // rows, of all sequences
    CacheType type = CacheType::f16;
    uint64_t window = 0;         // 0: none
    uint64_t sequence_rows = 0;  // that one sequence has at most; with a ratio, tokens that those are of
    uint32_t first_page = 0;     // in a sequence's list of pages: caches that need the same rows share pages
    uint64_t state_floats = 0;   // of a state; 0: these are keys and values
    // > 0: there are no values but the first `rank` elements of each key, which are a latent that all heads
    // share.
    uint32_t rank = 0;
    uint32_t ratio = 1;  // tokens of a row; whole blocks are a page

    bool is_state() const { return state_floats > 0; }
    uint64_t tokens() const { return capacity * ratio; }  // that all rows are of
    // Of a sequence with these pages; without, of the only one, which has the first rows.
    uint64_t row_of(uint64_t position, std::span<const uint32_t> pages) const {
        const uint64_t own = position % sequence_rows;
        return (pages.empty() ? own : pages[first_page + own / kPageRows] * kPageRows + own % kPageRows) /
               ratio;
    }
    // That a sequence has of them at most.
    uint32_t pages() const { return uint32_t((sequence_rows + kPageRows - 1) / kPageRows); }

    // Bytes of one token in one kv head: its key's elements and their scales, its value's elements and
    // scales.
    std::array<uint64_t, 4> planes() const;
    uint64_t row_bytes() const;  // all of them
    uint64_t bytes() const { return row_bytes() * kv_heads * capacity; }
    bool operator==(const CacheInfo&) const = default;
};
// Entries of a sequence's list of pages.
uint32_t page_entries(std::span<const CacheInfo> caches);
uint64_t cache_bytes(std::span<const CacheInfo> caches);

}  // namespace redline
