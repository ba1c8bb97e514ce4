// The types of the key-value cache: how elements are read and a head is stored. `at` is from
// place_in_cache().
#pragma once

#include "kernels/args.h"
#include "kernels/wave.h"

namespace redline::hip {

using args::Cache;

#ifdef RL_COPIES_AHEAD
// From device memory to the cache that all multiprocessors share, for loads that come later.
RL_DEVICE void bring_near(const void* line) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(line));
}
#endif

enum class Side { keys, values };
RL_DEVICE uint8_t* bytes_of(const Cache& c, Side side) {
    return side == Side::keys ? c.keys : c.values;
}

// One head's keys or values: less than 4 GiB, so that offsets are words.
struct HeadRows {
    const uint8_t* rows;
    const uint8_t* scales;
    uint32_t dims;
};

// A row of a sequence: in its pages, or as it is where it has none.
RL_DEVICE uint32_t row_in_cache(const uint32_t* pages, uint32_t row) {
    using args::kPageRows;
    return pages ? pages[row / kPageRows] * kPageRows + row % kPageRows : row;
}
RL_DEVICE uint32_t row_in_sequence(const Cache& c, uint32_t token) {
    return token < c.sequence_rows ? token : token % c.sequence_rows;
}

// True for caches whose types a launch's arguments say: see cache_mixed.h.
template <typename C>
constexpr bool kMixed = requires {
    C::kMixed;
};

// Which rows the keys of a block lie in. Keys are read in batches that begin at multiples of their size, so
// that none lies across the end of a page or a ring.
struct KeyRows {
    uint32_t round;  // the first token of the round of the ring that the block's keys begin in
    uint32_t sequence_rows;
    const uint32_t* pages;
    bool plain;  // no pages, and all keys in one round: rows are tokens less a constant
    // What has to be taken from the tokens of a batch to get their rows: the batch lies in this round or the
    // next.
    RL_DEVICE uint32_t before(uint32_t first) const {
        if (plain) return round;
        const uint32_t in_round = first - round < sequence_rows ? round : round + sequence_rows;
        return pages ? first - row_in_cache(pages, first - in_round) : in_round;
    }
};
// Of the sequence that a row is of, for keys [from, to).
RL_DEVICE KeyRows key_rows(const Cache& c, uint32_t row, uint32_t from, uint32_t to) {
    const uint32_t rows = c.sequence_rows, round = from < rows ? 0 : from / rows * rows;
    return {round, rows, c.places ? c.pages + c.places[row].list : nullptr, !c.places && to - round <= rows};
}

// Where a head of a row's token is stored; `position` is that of the step's first row.
RL_DEVICE size_t place_in_cache(const Cache& c, uint32_t head, uint32_t position, uint32_t row) {
    const uint32_t token = c.places ? c.places[row].position : position + row;
    const uint32_t* pages = c.places ? c.pages + c.places[row].list : nullptr;
    return head * c.capacity + row_in_cache(pages, row_in_sequence(c, token));
}

// Eight elements as they are read: unpack() gives what factor() times are their values.
struct FloatEight {
    float d[8];
};
RL_DEVICE void unpack(const FloatEight& from, float* to) {
    RL_UNROLL
    for (uint32_t e = 0; e < 8; ++e) to[e] = from.d[e];
}
RL_DEVICE float factor(const FloatEight&) {
    return 1.0f;
}

RL_DEVICE void unpack(const Words4& from, float* to) {
    RL_UNROLL
    for (uint32_t e = 0; e < 8; ++e) to[e] = half_value(uint16_t(from.d[e / 2] >> (e % 2 * 16)));
}
RL_DEVICE float factor(const Words4&) {
    return 1.0f;
}

struct ByteEight {
    Words2 codes;
    uint16_t scale;
};
// Signed bytes, shifted to be unsigned, as mantissas of numbers from 2^23 on: cheaper than conversions.
RL_DEVICE void unpack(const ByteEight& from, float* to) {
    RL_UNROLL
    for (uint32_t e = 0; e < 8; ++e) {
        const uint32_t bytes = from.codes.d[e / 4] ^ 0x80808080u;
        to[e] = bits_float(pick_bytes(0x07060500u | e % 4, bytes, 0x4B000000u)) - 8388736.0f;
    }
}
RL_DEVICE float factor(const ByteEight& from) {
    return half_value(from.scale);
}

struct cache_f32 {
    using Eight = FloatEight;
    static constexpr bool kWhole = true;          // heads are multiples of eight
    static constexpr uint32_t kGroup = 1;         // elements stored together
    static constexpr uint32_t kElementBytes = 4;  // without scales
    RL_DEVICE static HeadRows head(const Cache& c, Side side, uint32_t head) {
        return {bytes_of(c, side) + size_t(head) * c.capacity * c.head_dim * 4, nullptr, c.head_dim};
    }
    // Of heads whose size is a multiple of eight.
    RL_DEVICE static Eight eight(const HeadRows& h, uint32_t key, uint32_t i) {
        const auto* four = reinterpret_cast<const Float4*>(h.rows + (key * h.dims + i) * 4);
        const Float4 a = four[0], b = four[1];
        return {a.d[0], a.d[1], a.d[2], a.d[3], b.d[0], b.d[1], b.d[2], b.d[3]};
    }
    RL_DEVICE static float value(const HeadRows& h, uint32_t key, uint32_t i) {
        return load<float>(h.rows, key * h.dims + i);
    }
    template <typename New>
    RL_DEVICE static void store(const Cache& c, Side side, size_t at, uint32_t i, New value) {
        reinterpret_cast<float*>(bytes_of(c, side))[at * c.head_dim + i] = value(i);
    }
};

struct cache_f16 {
    using Eight = Words4;
    static constexpr bool kWhole = true;  // heads are multiples of eight
    static constexpr uint32_t kGroup = 1, kElementBytes = 2;
    RL_DEVICE static HeadRows head(const Cache& c, Side side, uint32_t head) {
        return {bytes_of(c, side) + size_t(head) * c.capacity * c.head_dim * 2, nullptr, c.head_dim};
    }
    RL_DEVICE static Eight eight(const HeadRows& h, uint32_t key, uint32_t i) {
        return *reinterpret_cast<const Words4*>(h.rows + (key * h.dims + i) * 2);
    }
    RL_DEVICE static float value(const HeadRows& h, uint32_t key, uint32_t i) {
        return half_value(load<uint16_t>(h.rows, key * h.dims + i));
    }
    template <typename New>
    RL_DEVICE static void store(const Cache& c, Side side, size_t at, uint32_t i, New value) {
        reinterpret_cast<uint16_t*>(bytes_of(c, side))[at * c.head_dim + i] = half_bits(value(i));
    }
};

// Codes in bytes; behind all of them the scales (halfs) of 32 elements each.
struct cache_q8_0 {
    using Eight = ByteEight;
    static constexpr bool kWhole = true;  // heads are multiples of eight
    static constexpr uint32_t kGroup = 32, kElementBytes = 1;
    RL_DEVICE static HeadRows head(const Cache& c, Side side, uint32_t head) {
        const size_t elements = c.capacity * c.head_dim;
        const uint8_t* data = bytes_of(c, side);
        return {data + head * elements, data + c.kv_heads * elements + head * (elements / 32) * 2,
                c.head_dim};
    }
    RL_DEVICE static Eight eight(const HeadRows& h, uint32_t key, uint32_t i) {
        return {*reinterpret_cast<const Words2*>(h.rows + (key * h.dims + i)),
                load<uint16_t>(h.scales, key * (h.dims / 32) + i / 32)};
    }
    RL_DEVICE static float value(const HeadRows& h, uint32_t key, uint32_t i) {
        const float d = half_value(load<uint16_t>(h.scales, key * (h.dims / 32) + i / 32));
        return d * float(int8_t(h.rows[key * h.dims + i]));
    }
    template <typename New>
    RL_DEVICE static void store(const Cache& c, Side side, size_t at, uint32_t first, New value) {
        uint8_t* const data = bytes_of(c, side);
        float most = 0.0f;
        for (uint32_t i = 0; i < 32; ++i) most = larger(most, __builtin_fabsf(value(first + i)));
        const uint16_t bits = half_bits(most / 127.0f);
        const float d = half_value(bits);
        const size_t scales = c.capacity * c.kv_heads * (c.head_dim / 2);
        reinterpret_cast<uint16_t*>(data)[scales + at * (c.head_dim / 32) + first / 32] = bits;
        for (uint32_t i = 0; i < 32; ++i) {
            const float code = d > 0.0f ? round_of(value(first + i) / d) : 0.0f;
            data[at * c.head_dim + first + i] = uint8_t(int32_t(code > 127.0f    ? 127.0f
                                                                : code < -127.0f ? -127.0f
                                                                                 : code));
        }
    }
};

// Heads of any size, element by element.
template <typename C>
struct any_size {
    using Eight = FloatEight;
    static constexpr bool kWhole = false;
    static constexpr uint32_t kGroup = C::kGroup, kElementBytes = C::kElementBytes;
    RL_DEVICE static HeadRows head(const Cache& c, Side side, uint32_t head) {
        return C::head(c, side, head);
    }
    RL_DEVICE static Eight eight(const HeadRows& h, uint32_t key, uint32_t i) {
        Eight out;
        RL_UNROLL
        for (uint32_t e = 0; e < 8; ++e) out.d[e] = i + e < h.dims ? C::value(h, key, i + e) : 0.0f;
        return out;
    }
    template <typename New>
    RL_DEVICE static void store(const Cache& c, Side side, size_t at, uint32_t i, New value) {
        C::store(c, side, at, i, value);
    }
};

}  // namespace redline::hip
