// Caches whose keys and values are each of any type: a launch's arguments name both. Waves branch on a type
// as a whole, where they read once for a batch of loads, so that the loads of a batch overlap. A quantized
// type has the fifth bits of all blocks behind their codes, and then their scales.
#pragma once

#include "kernels/attention_many.h"
#include "kernels/pick.h"

namespace redline::hip {

using args::CacheType;

RL_DEVICE constexpr bool has_highs(CacheType type) {
    return type == CacheType::q5_1 || type == CacheType::q5_0;
}
RL_DEVICE constexpr bool has_lowest(CacheType type) {
    return type == CacheType::q5_1 || type == CacheType::q4_1;
}
// The code of zero.
RL_DEVICE constexpr uint32_t zero_code(CacheType type) {
    return type == CacheType::q4_0 ? 8 : type == CacheType::q5_0 ? 16 : 0;
}
// Bytes of `elements`, whole blocks of them where the type has such: without high bits and scales, and of
// high bits.
RL_DEVICE size_t code_bytes(CacheType type, size_t elements) {
    if (type == CacheType::f32) return elements * 4;
    if (type == CacheType::f16 || type == CacheType::bf16) return elements * 2;
    return type == CacheType::q8_0 ? elements : elements / 2;
}
RL_DEVICE size_t high_bytes(CacheType type, size_t elements) {
    return has_highs(type) ? elements / 8 : 0;
}

// An address that all lanes share: CDNA has few scalar registers.
RL_DEVICE const uint8_t* address_in_lanes(const uint8_t* at) {
#if defined(__GFX9__)
    return reinterpret_cast<const uint8_t*>(in_each_lane(size_t(at)));
#else
    return at;
#endif
}

struct MixedRows : HeadRows {
    const uint8_t* highs;
    CacheType type;
};

struct cache_bf16 {
    RL_DEVICE static FloatEight eight(const HeadRows& h, uint32_t key, uint32_t i) {
        const auto from = *reinterpret_cast<const Words4*>(h.rows + (key * h.dims + i) * 2);
        FloatEight out;
        RL_UNROLL
        for (uint32_t e = 0; e < 8; ++e)
            out.d[e] = bits_float(e % 2 == 0 ? from.d[e / 2] << 16 : from.d[e / 2] & 0xFFFF0000u);
        return out;
    }
    RL_DEVICE static float value(const HeadRows& h, uint32_t key, uint32_t i) {
        return bits_float(uint32_t(load<uint16_t>(h.rows, key * h.dims + i)) << 16);
    }
    static constexpr uint32_t kGroup = 1, kElementBytes = 2;
};

// Four bits, each in a byte.
RL_DEVICE uint32_t spread_bits(uint32_t bits) {
    return bits * 0x00204081u & 0x01010101u;
}

// Codes of 4 and 5 bits: elements i and i + 16 of a block share a byte.
template <CacheType kType>
struct cache_codes {
    RL_DEVICE static FloatEight eight(const MixedRows& h, uint32_t key, uint32_t i) {
        const uint32_t block = key * (h.dims / 32) + i / 32, part = i % 32 / 8;
        const auto pair = load<Words2>(h.rows, block * 2 + part % 2);
        float scale, lowest = 0.0f;
        if constexpr (has_lowest(kType)) {
            const auto both = load<uint32_t>(h.scales, block);
            scale = half_value(uint16_t(both));
            lowest = half_value(uint16_t(both >> 16));
        } else {
            scale = half_value(load<uint16_t>(h.scales, block));
        }
        uint32_t highs = 0;
        if constexpr (has_highs(kType)) highs = h.highs[block * 4 + part];
        FloatEight out;
        RL_UNROLL
        for (uint32_t w = 0; w < 2; ++w) {
            uint32_t codes = (pair.d[w] >> (part / 2 * 4)) & 0x0F0F0F0Fu;
            if constexpr (has_highs(kType)) codes |= spread_bits((highs >> (w * 4)) & 15u) << 4;
            if constexpr (kType == CacheType::iq4_nl)
                codes = pick_levels(codes, 0xBFAD9881u, 0xF6EADDCFu, 0x26190D01u, 0x71594535u).below;
            RL_UNROLL
            for (uint32_t e = 0; e < 4; ++e) {
                if constexpr (kType == CacheType::iq4_nl)
                    out.d[w * 4 + e] = scale * float(signed_byte(codes, e));
                else if constexpr (has_lowest(kType))
                    out.d[w * 4 + e] = fused(scale, float(byte_of(codes, e)), lowest);
                else
                    out.d[w * 4 + e] = scale * (float(byte_of(codes, e)) - float(zero_code(kType)));
            }
        }
        return out;
    }
};

// Eights of any type as floats, or for matrix units as halfs.
template <typename C>
struct as_floats {
    using Eight = FloatEight;
    static constexpr bool kWhole = true;
    RL_DEVICE static FloatEight eight(const MixedRows& h, uint32_t key, uint32_t i) {
        const auto from = C::eight(h, key, i);
        FloatEight out;
        unpack(from, out.d);
        const float times = factor(from);
        RL_UNROLL
        for (uint32_t e = 0; e < 8; ++e) out.d[e] *= times;
        return out;
    }
};
template <typename C>
struct as_halfs {
    using Eight = Words4;
    RL_DEVICE static Words4 eight(const MixedRows& h, uint32_t key, uint32_t i) {
        return halves(C::eight(h, key, i));
    }
};

// Calls read(As of the type that rows have), of those that are not f32.
template <template <typename> typename As, typename Read>
RL_DEVICE void choose_rounded(CacheType type, Read read) {
    switch (type) {
        case CacheType::f16:
            return read(As<cache_f16>());
        case CacheType::bf16:
            return read(As<cache_bf16>());
        case CacheType::q8_0:
            return read(As<cache_q8_0>());
        case CacheType::q5_1:
            return read(As<cache_codes<CacheType::q5_1>>());
        case CacheType::q5_0:
            return read(As<cache_codes<CacheType::q5_0>>());
        case CacheType::q4_1:
            return read(As<cache_codes<CacheType::q4_1>>());
        case CacheType::q4_0:
            return read(As<cache_codes<CacheType::q4_0>>());
        case CacheType::iq4_nl:
        case CacheType::f32:
            break;
    }
    read(As<cache_codes<CacheType::iq4_nl>>());
}

// The new elements of a block: the one with the largest magnitude, the first of several; the smallest and
// the largest.
struct Extremes {
    float largest, low, high;
    bool finite;
};
template <typename New>
RL_DEVICE Extremes extremes_of(uint32_t begin, New value) {
    Extremes out = {0.0f, value(begin), value(begin), true};
    float zero = 0.0f;  // stays 0, or becomes NaN
    RL_FEW_TURNS
    for (uint32_t i = 0; i < 32; ++i) {
        const float x = value(begin + i);
        if (__builtin_fabsf(x) > __builtin_fabsf(out.largest)) out.largest = x;
        out.low = x < out.low ? x : out.low;
        out.high = x > out.high ? x : out.high;
        zero += x * 0.0f;
    }
    out.finite = zero == 0.0f;
    return out;
}

RL_DEVICE float held_within(float x, float low, float high) {
    return x < low ? low : x > high ? high : x;
}

// Scale and minimum, rounded to halfs.
struct BlockScales {
    uint16_t scale, lowest;
};
RL_DEVICE BlockScales scales_of(CacheType type, const Extremes& range) {
    const auto finite_half = [](float x) { return half_bits(held_within(x, -65504.0f, 65504.0f)); };
    if (!range.finite) return {0x7E00, 0x7E00};
    const float most = has_highs(type) ? 31.0f : 15.0f;
    if (has_lowest(type)) return {finite_half(range.high / most - range.low / most), finite_half(range.low)};
    if (type == CacheType::q8_0) return {finite_half(__builtin_fabsf(range.largest) / 127.0f), 0};
    return {finite_half(range.largest / (type == CacheType::iq4_nl ? -127.0f : -float(zero_code(type)))), 0};
}

// The level of iq4_nl next to x, the lower one of two.
RL_DEVICE uint32_t nearest_level(float x) {
    constexpr float kLevels[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
    uint32_t code = 0;
    RL_UNROLL
    for (uint32_t i = 1; i < 16; ++i) code += x > (kLevels[i - 1] + kLevels[i]) * 0.5f ? 1u : 0u;
    return code;
}
RL_DEVICE uint32_t code_of(CacheType type, float x, float scale, float lowest) {
    const float scaled = scale != 0.0f ? (x - lowest) / scale : 0.0f;
    if (type == CacheType::iq4_nl) return nearest_level(scaled);
    if (type == CacheType::q8_0)
        return uint32_t(int32_t(held_within(round_of(scaled), -127.0f, 127.0f))) & 255u;
    return uint32_t(held_within(round_of(scaled) + float(zero_code(type)), 0.0f, has_highs(type) ? 31 : 15));
}

// Where a block's bytes lie.
struct BlockPlaces {
    uint8_t *codes, *highs;
    uint16_t* scales;
};
RL_DEVICE BlockPlaces places_of_block(const Cache& c, Side side, CacheType type, size_t block) {
    const size_t all = c.capacity * c.kv_heads * c.head_dim, codes = code_bytes(type, all);
    uint8_t* const bytes = bytes_of(c, side);
    return {bytes + code_bytes(type, block * 32), bytes + codes + block * 4,
            reinterpret_cast<uint16_t*>(bytes + codes + high_bytes(type, all)) +
                block * (has_lowest(type) ? 2 : 1)};
}

// Eight elements of a block of head `at`, from element `first` on. The lanes of a block find its extremes
// each by themselves.
template <typename New>
RL_DEVICE void store_codes(const Cache& c, Side side, CacheType type, size_t at, uint32_t first, New value) {
    const uint32_t begin = first / 32 * 32, part = first % 32 / 8;
    const Extremes range = extremes_of(begin, value);
    const BlockScales bits = scales_of(type, range);
    const float scale = half_value(bits.scale), lowest = has_lowest(type) ? half_value(bits.lowest) : 0.0f;
    const auto code = [&](uint32_t i) {
        return range.finite ? code_of(type, value(begin + i), scale, lowest) : 0u;
    };
    const BlockPlaces to = places_of_block(c, side, type, at * (c.head_dim / 32) + first / 32);
    if (part == 0) to.scales[0] = bits.scale;
    if (part == 0 && has_lowest(type)) to.scales[1] = bits.lowest;
    if (type == CacheType::q8_0) {
        for (uint32_t e = 0; e < 8; ++e) to.codes[part * 8 + e] = uint8_t(code(part * 8 + e));
        return;
    }
    uint32_t word = 0, highs = 0;
    RL_FEW_TURNS
    for (uint32_t e = 0; e < 4; ++e) {
        const uint32_t i = part * 4 + e;
        word |= ((code(i) & 15u) | (code(i + 16) & 15u) << 4) << (8 * e);
    }
    reinterpret_cast<uint32_t*>(to.codes)[part] = word;
    if (!has_highs(type)) return;
    RL_FEW_TURNS
    for (uint32_t e = 0; e < 8; ++e) highs |= code(part * 8 + e) >> 4 << e;
    to.highs[part] = uint8_t(highs);
}

// Rounds to nearest, ties to even; NaN is made quiet.
RL_DEVICE uint16_t bfloat_bits(float x) {
    const uint32_t bits = float_bits(x);
    return uint16_t((bits & 0x7FFFFFFFu) > 0x7F800000u ? bits >> 16 | 0x40u
                                                       : (bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

struct cache_mixed {
    using Eight = FloatEight;
    static constexpr bool kMixed = true;
    static constexpr bool kWhole = true;  // heads are multiples of eight
    static constexpr uint32_t kGroup = 8;
    RL_DEVICE static CacheType type_of(const Cache& c, Side side) {
        return side == Side::keys ? c.key_type : c.value_type;
    }
    RL_DEVICE static MixedRows head(const Cache& c, Side side, uint32_t head) {
        const CacheType type = type_of(c, side);
        const size_t elements = c.capacity * c.head_dim, all = elements * c.kv_heads;
        const uint8_t *const rows = bytes_of(c, side), *const highs = rows + code_bytes(type, all),
                             *const scales = highs + high_bytes(type, all);
        const uint32_t scale_bytes = has_lowest(type) ? 4 : 2;
        return {{address_in_lanes(rows + code_bytes(type, head * elements)),
                 address_in_lanes(scales + head * (elements / 32) * scale_bytes), c.head_dim},
                address_in_lanes(highs + high_bytes(type, head * elements)),
                type};
    }
    template <typename Read>
    RL_DEVICE static void choose(const MixedRows& h, Read read) {
        if (h.type == CacheType::f32) return read(as_floats<cache_f32>());
        choose_rounded<as_floats>(h.type, read);
    }
    template <typename New>
    RL_DEVICE static void store(const Cache& c, Side side, size_t at, uint32_t first, New value) {
        const CacheType type = type_of(c, side);
        if (type == CacheType::q8_0 || type > CacheType::bf16)
            return store_codes(c, side, type, at, first, value);
        uint8_t* const bytes = bytes_of(c, side);
        for (uint32_t i = first; i < lesser(first + kGroup, c.head_dim); ++i) {
            const size_t to = at * c.head_dim + i;
            if (type == CacheType::f32)
                reinterpret_cast<float*>(bytes)[to] = value(i);
            else
                reinterpret_cast<uint16_t*>(bytes)[to] =
                    type == CacheType::f16 ? half_bits(value(i)) : bfloat_bits(value(i));
        }
    }
};

// For matrix units, which multiply no floats.
struct mixed_halfs {
    using Eight = Words4;
    static constexpr bool kMixed = true;
    RL_DEVICE static MixedRows head(const Cache& c, Side side, uint32_t head) {
        return cache_mixed::head(c, side, head);
    }
    template <typename Read>
    RL_DEVICE static void choose(const MixedRows& h, Read read) {
        choose_rounded<as_halfs>(h.type, read);
    }
};

// Heads of any size, which no quantized type has.
struct mixed_any_size {
    using Eight = FloatEight;
    static constexpr bool kMixed = true;
    static constexpr bool kWhole = false;
    RL_DEVICE static MixedRows head(const Cache& c, Side side, uint32_t head) {
        return cache_mixed::head(c, side, head);
    }
    template <typename Read>
    RL_DEVICE static void choose(const MixedRows& h, Read read) {
        if (h.type == CacheType::f32) return read(any_size<cache_f32>());
        if (h.type == CacheType::f16) return read(any_size<cache_f16>());
        read(any_size<cache_bf16>());
    }
    RL_DEVICE static float value(const MixedRows& h, uint32_t key, uint32_t i) {
        if (h.type == CacheType::f32) return cache_f32::value(h, key, i);
        return h.type == CacheType::f16 ? cache_f16::value(h, key, i) : cache_bf16::value(h, key, i);
    }
};

}  // namespace redline::hip
