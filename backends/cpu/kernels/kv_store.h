// Writing one token to a KvHead, over the Vec of the including level. Every level stores the same bits (but
// for the payload of a NaN): all steps are exact or rounded once, in the same order.
#pragma once

#include "kv_codes.h"

namespace redline::cpu {
namespace {

// Calls sink(i, half) for the `count` elements of x in order.
template <typename Sink>
inline void for_each_half(const float* x, size_t count, Sink sink) {
    uint16_t halfs[Vec::kLanes];
    size_t i = 0;
    for (; i + Vec::kLanes <= count; i += Vec::kLanes) {
        Vec::load(x + i).store_half(halfs);
        for (size_t j = 0; j < Vec::kLanes; ++j) sink(i + j, halfs[j]);
    }
    float rest[Vec::kLanes] = {};
    for (size_t j = 0; i + j < count; ++j) rest[j] = x[i + j];
    Vec::load(rest).store_half(halfs);
    for (size_t j = 0; i + j < count; ++j) sink(i + j, halfs[j]);
}

// 32 elements as int8 under a half scale. The integers are made with the scale as rounded. A group that holds
// an infinity or a NaN becomes all NaN; one too large for a half scale saturates.
inline uint16_t quantize_group(const float* x, int8_t (&q)[kGroup]) {
    Vec largest = Vec::set1(0.0f);
    Vec finite = Vec::set1(0.0f);  // stays 0, or becomes NaN
    for (uint32_t i = 0; i < kGroup; i += Vec::kLanes) {
        const Vec v = Vec::load(x + i);
        largest = Vec::max(largest, Vec::abs(v));
        finite = Vec::fma(v, Vec::set1(0.0f), finite);
    }
    uint16_t halfs[Vec::kLanes];
    if (!(finite.sum() == 0.0f)) {
        for (int8_t& element : q) element = 0;
        return 0x7E00;
    }
    const Vec exact = Vec::set1(largest.largest()) / Vec::set1(127.0f);
    Vec::min(exact, Vec::set1(65504.0f)).store_half(halfs);
    const Vec scale = Vec::load_half(halfs);
    const Vec zero = Vec::set1(0.0f);
    const Vec inverse = Vec::where_less(zero, scale, Vec::set1(1.0f) / scale, zero);
    const Vec magic = Vec::set1(0x1.8p23f);
    float whole[kGroup];
    for (uint32_t i = 0; i < kGroup; i += Vec::kLanes) {
        const Vec scaled = Vec::load(x + i) * inverse;
        const Vec held = Vec::max(Vec::set1(-127.0f), Vec::min(Vec::set1(127.0f), scaled));
        ((held + magic) - magic).store(whole + i);
    }
    for (uint32_t i = 0; i < kGroup; ++i) q[i] = static_cast<int8_t>(whole[i]);
    return halfs[0];
}

// The element with the largest magnitude, the first of several; the smallest and the largest element.
struct Extremes {
    float largest = 0.0f, low, high;
    bool finite;

    explicit Extremes(const float* x) : low(x[0]), high(x[0]) {
        float zero = 0.0f;  // stays 0, or becomes NaN
        for (uint32_t i = 0; i < kGroup; ++i) {
            if (__builtin_fabsf(x[i]) > __builtin_fabsf(largest)) largest = x[i];
            low = x[i] < low ? x[i] : low;
            high = x[i] > high ? x[i] : high;
            zero += x[i] * 0.0f;
        }
        finite = zero == 0.0f;
    }
};

inline float held_within(float x, float low, float high) {
    return x < low ? low : x > high ? high : x;
}

// The half next to x, of those that are finite.
inline uint16_t finite_half(float x) {
    uint16_t halfs[Vec::kLanes];
    Vec::set1(held_within(x, -65504.0f, 65504.0f)).store_half(halfs);
    return halfs[0];
}
inline float from_half(uint16_t half) {
    uint16_t halfs[Vec::kLanes];
    for (uint16_t& one : halfs) one = half;
    return Vec::load_half(halfs).first();
}

// The same in a type of 4 or 5 bits.
inline PackedGroup pack_group(CacheType type, const float* x) {
    PackedGroup out = {};
    const Extremes range(x);
    const bool has_low = cache_code(type).scales == 2, by_levels = type == CacheType::iq4_nl;
    const float most = cache_code(type).highs ? 31.0f : 15.0f, middle = (most + 1.0f) / 2.0f;
    if (!range.finite) {
        out.scales[0] = out.scales[1] = 0x7E00;
        return out;
    }
    out.scales[0] = finite_half(has_low     ? range.high / most - range.low / most
                                : by_levels ? range.largest / float(kLevels[0])
                                            : range.largest / -middle);
    if (has_low) out.scales[1] = finite_half(range.low);
    const float scale = from_half(out.scales[0]), first = from_half(out.scales[1]);
    const float base = has_low ? 0.0f : middle;
    uint8_t codes[kGroup];
    for (uint32_t i = 0; i < kGroup; ++i) {
        const float scaled = scale != 0.0f ? (x[i] - first) / scale : 0.0f;
        // Adding and taking away 1.5 * 2^23 rounds to nearest.
        const float whole = (held_within(scaled, -middle, most) + 0x1.8p23f) - 0x1.8p23f;
        codes[i] = by_levels ? nearest_level(scaled) : uint8_t(held_within(whole + base, 0.0f, most));
    }
    pack_codes(codes, out);
    return out;
}

// Where a token's bytes of one plane are, `step` bytes apart.
struct Strided {
    std::byte* first;
    uint64_t step;

    void put(uint64_t at, const void* from, size_t bytes) const {
        std::memcpy(first + at * step, from, bytes);
    }
};

inline void store_packed(CacheType type, const float* x, uint64_t groups, Strided codes, Strided highs,
                         Strided scales) {
    const CacheCode code = cache_code(type);
    for (uint64_t g = 0; g < groups; ++g) {
        const PackedGroup group = pack_group(type, x + g * kGroup);
        for (uint64_t i = 0; i < kHalfGroup; ++i) codes.put(g * kHalfGroup + i, &group.codes[i], 1);
        for (uint64_t i = 0; code.highs && i < kHighBytes; ++i)
            highs.put(g * kHighBytes + i, &group.highs[i], 1);
        for (uint64_t i = 0; i < code.scales; ++i) scales.put(g * code.scales + i, &group.scales[i], 2);
    }
}

inline void store_bf16(const float* x, uint64_t count, Strided to) {
    for (uint64_t i = 0; i < count; ++i) {
        const uint16_t bits = to_bfloat(x[i]);
        to.put(i, &bits, sizeof bits);
    }
}

inline void store_key(const KvLayout& layout, uint64_t position, const float* key) {
    const uint64_t first = layout.key_index(position, 0);
    if (layout.keys == CacheType::f32) {
        float* const keys = layout.float_keys() + first;
        for (uint64_t i = 0; i < layout.dims; ++i) keys[i * kKeyBlock] = key[i];
    } else if (layout.keys == CacheType::f16) {
        uint16_t* const keys = layout.half_keys() + first;
        for_each_half(key, layout.dims, [keys](size_t i, uint16_t half) { keys[i * kKeyBlock] = half; });
    } else if (layout.keys == CacheType::bf16) {
        store_bf16(key, layout.dims,
                   {reinterpret_cast<std::byte*>(layout.half_keys() + first), 2 * kKeyBlock});
    } else if (layout.keys == CacheType::q8_0) {
        int8_t q[kGroup];
        for (uint64_t g = 0; g < layout.groups; ++g) {
            layout.key_scales()[layout.key_scale_index(position, g)] = quantize_group(key + g * kGroup, q);
            for (uint32_t i = 0; i < kGroup; ++i)
                layout.int8_keys()[first + (g * kGroup + i) * kKeyBlock] = q[i];
        }
    } else {
        const uint64_t block = position / kKeyBlock * kKeyBlock, lane = position % kKeyBlock;
        auto* const scales =
            reinterpret_cast<std::byte*>(layout.key_scales() + layout.key_scale_index(position, 0));
        store_packed(
            layout.keys, key, layout.groups, {layout.key_codes() + block * layout.dims / 2 + lane, kKeyBlock},
            {layout.key_highs() + block * layout.dims / 8 + lane, kKeyBlock}, {scales, 2 * kKeyBlock});
    }
}

inline void store_value(const KvLayout& layout, uint64_t position, const float* value) {
    const uint64_t first = layout.value_index(position, 0);
    if (layout.values == CacheType::f32) {
        std::memcpy(layout.float_values() + first, value, layout.dims * sizeof(float));
    } else if (layout.values == CacheType::f16) {
        uint16_t* const values = layout.half_values() + first;
        for_each_half(value, layout.dims, [values](size_t i, uint16_t half) { values[i] = half; });
    } else if (layout.values == CacheType::bf16) {
        store_bf16(value, layout.dims, {reinterpret_cast<std::byte*>(layout.half_values() + first), 2});
    } else if (layout.values == CacheType::q8_0) {
        int8_t q[kGroup];
        for (uint64_t g = 0; g < layout.groups; ++g) {
            layout.value_scales()[layout.value_scale_index(position, g)] =
                quantize_group(value + g * kGroup, q);
            std::memcpy(layout.int8_values() + first + g * kGroup, q, kGroup);
        }
    } else {
        auto* const scales =
            reinterpret_cast<std::byte*>(layout.value_scales() + layout.value_scale_index(position, 0));
        store_packed(layout.values, value, layout.groups, {layout.value_codes() + first / 2, 1},
                     {layout.value_highs() + first / 8, 1}, {scales, 2 * kKeyBlock});
    }
}

inline void kv_store(const KvHead& head, uint64_t position, const float* key, const float* value) {
    const KvLayout layout(head);
    store_key(layout, position, key);
    if (layout.rank == 0) store_value(layout, position, value);
}

}  // namespace
}  // namespace redline::cpu
