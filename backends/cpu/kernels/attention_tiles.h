// Tiles of attention over the Vec of the including level: panels of a cache converted to floats, and the
// softmax of one row of scores.
#pragma once

#include "attention_products.h"
#include "kv_codes.h"
#include "vec_math.h"

#include <cstring>

namespace redline::cpu {
namespace {

constexpr size_t kPanelKeys = 32;  // keys converted to floats at a time, then used by every query
constexpr size_t kPanelDims = 32;  // dimensions of values likewise; one q8_0 group
constexpr float kInfinity = __builtin_inff();

inline size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}
inline size_t round_up(size_t n, size_t unit) {
    return (n + unit - 1) / unit * unit;
}

// Asks for memory that is read soon. Without it decoding behind 8192 tokens takes 10 % longer with q4_0
// (Sapphire Rapids, one thread, d = 64, 3 queries, 2026-12-01).
inline void fetch(const std::byte* from, size_t bytes) {
    for (size_t line = 0; line < bytes; line += 64) __builtin_prefetch(from + line, 0, 2);
}

// The scale of a group's elements, and where there is a minimum that, too.
template <bool kLow>
struct GroupScale {
    Vec scale, low;
    Vec operator()(Vec element) const { return kLow ? element * scale + low : element * scale; }
};

// Calls work.template operator()<kFifth, kLow>() as a type with codes of 4 or 5 bits has it.
template <typename Work>
inline void with_code(const CacheCode& code, Work work) {
    if (code.highs)
        code.scales == 2 ? work.template operator()<true, true>() : work.template operator()<true, false>();
    else
        code.scales == 2 ? work.template operator()<false, true>() : work.template operator()<false, false>();
}

// Keys of a group of dimensions of one block, [dim][16], from codes of 8 bits; `scales` are [scale][16].
inline void convert_int8_keys(const int8_t* codes, const uint16_t* scales, float* panel) {
    for (size_t lane = 0; lane < kPiece; lane += kLanes) {
        const Vec scale = Vec::load_half(scales + lane);
        for (size_t i = lane; i < kGroup * kPiece; i += kPiece)
            (Vec::load_int8(codes + i) * scale).store(panel + i);
    }
}

// The same from codes of 4 or 5 bits.
template <bool kFifth, bool kLow>
inline void convert_coded_keys(const CodeTable& table, const std::byte* codes, const std::byte* highs,
                               const uint16_t* scales, float* panel) {
    GroupScale<kLow> scale[kCodeVectors];
    for (size_t n = 0; n < kCodeVectors; ++n) {
        scale[n].scale = Vec::load_half(scales + n * kLanes);
        if (kLow) scale[n].low = Vec::load_half(scales + kPiece + n * kLanes);
    }
    const auto convert = [&](size_t i, const CodeElements& x) {
        for (size_t n = 0; n < kCodeVectors; ++n) {
            scale[n](x.low[n]).store(panel + i * kPiece + n * kLanes);
            scale[n](x.high[n]).store(panel + (i + kHalfGroup) * kPiece + n * kLanes);
        }
    };
    for (size_t byte = 0; byte < kHalfGroup / 8; ++byte)
#pragma GCC unroll 8
        for (uint32_t bit = 0; bit < 8; ++bit) {
            const size_t i = byte * 8 + bit;
            if constexpr (kFifth)
                convert(i, table.read(codes + i * kPiece,
                                      FifthBits::of_tokens(highs + byte * kPiece,
                                                           highs + (byte + kHighBytes / 2) * kPiece, bit)));
            else
                convert(i, table.read(codes + i * kPiece));
        }
}

// Groups [first, first + count) of keys, counted through all blocks.
inline void convert_key_groups(const KvLayout& cache, uint64_t first, size_t count, float* panel) {
    const uint16_t* scales = cache.key_scales() + first * cache.key_code.scales * kPiece;
    const size_t scale_step = cache.key_code.scales * kPiece, panel_step = kGroup * kPiece;
    if (cache.keys == CacheType::q8_0) {
        const int8_t* codes = cache.int8_keys() + first * kGroup * kPiece;
        for (size_t i = 0; i < count; ++i)
            convert_int8_keys(codes + i * kGroup * kPiece, scales + i * scale_step, panel + i * panel_step);
        return;
    }
    const CodeTable table(cache.keys);
    const std::byte* const codes = cache.key_codes() + first * kHalfGroup * kPiece;
    const std::byte* const highs = cache.key_highs() + first * kHighBytes * kPiece;
    with_code(cache.key_code, [&]<bool kFifth, bool kLow>() {
        for (size_t i = 0; i < count; ++i)
            convert_coded_keys<kFifth, kLow>(table, codes + i * kHalfGroup * kPiece,
                                             highs + i * kHighBytes * kPiece, scales + i * scale_step,
                                             panel + i * panel_step);
    });
}

// Keys of `blocks` blocks from `block` on as floats, [block][dim][16].
inline void convert_keys(const KvLayout& cache, uint64_t block, size_t blocks, float* panel) {
    const uint64_t first = block * cache.dims * kPiece;
    const size_t count = blocks * cache.dims * kPiece;
    if (cache.keys == CacheType::f32) {
        std::memcpy(panel, cache.float_keys() + first, count * sizeof(float));
    } else if (cache.keys == CacheType::f16) {
        const uint16_t* keys = cache.half_keys() + first;
        for (size_t i = 0; i < count; i += kLanes) Vec::load_half(keys + i).store(panel + i);
    } else if (cache.keys == CacheType::bf16) {
        widen_bfloats(cache.half_keys() + first, count, panel);
    } else {
        convert_key_groups(cache, block * cache.groups, blocks * cache.groups, panel);
    }
}

// Dimensions [dim, dim + kPanelDims) of the values of tokens [token, token + count) as floats,
// [piece][token][16], pieces kTile * 16 apart; dimensions past the last are 0.
template <typename Element>
inline void convert_plain_values(const typename Element::Type* values, size_t dims, size_t count, size_t dim,
                                 float* panel) {
    const size_t present = smaller(kPanelDims, dims - dim);
    const size_t width = round_up(present, kPiece);
    for (size_t i = 0; i < count; ++i, values += dims) {
        typename Element::Type padded[kPanelDims];
        const auto* source = values;
        if (present < width) {
            std::memset(padded, 0, sizeof padded);
            std::memcpy(padded, values, present * sizeof *values);
            source = padded;
        }
        for (size_t n = 0; n < width / kLanes; ++n)
            Element{}.load(source + n * kLanes).store(panel + i * kPiece + column_offset(n, kTile * kPiece));
    }
}

// One of the value scales of a group for `count` tokens from `token` on, a multiple of 16.
inline void load_value_scales(const KvLayout& cache, uint64_t token, size_t count, size_t group,
                              float* scales, size_t which = 0) {
    for (size_t i = 0; i < count; i += kLanes)
        Vec::load_half(cache.value_scales() + cache.value_scale_index(token + i, group) + which * kKeyBlock)
            .store(scales + i);
}

// A group of dimensions of tokens whose codes are `dims` elements apart, with the scale of each token.
inline void convert_int8_values(const int8_t* codes, size_t dims, const float* scales, size_t count,
                                float* panel) {
    for (size_t i = 0; i < count; ++i, codes += dims) {
        const Vec scale = Vec::set1(scales[i]);
        for (size_t n = 0; n < kPanelDims / kLanes; ++n)
            (Vec::load_int8(codes + n * kLanes) * scale)
                .store(panel + i * kPiece + column_offset(n, kTile * kPiece));
    }
}

// The same with codes of 4 or 5 bits, and the minimum of each token where there is one.
template <bool kFifth, bool kLow>
inline void convert_coded_values(CacheType type, const std::byte* codes, const std::byte* highs, size_t dims,
                                 const float* scales, const float* lows, size_t count, float* panel) {
    const CodeTable table(type);
    for (size_t i = 0; i < count; ++i, codes += dims / 2, highs += dims / 8, panel += kPiece) {
        const GroupScale<kLow> scale{Vec::set1(scales[i]), Vec::set1(kLow ? lows[i] : 0.0f)};
        CodeElements x;
        if constexpr (kFifth)
            x = table.read(codes, FifthBits::of_group(highs));
        else
            x = table.read(codes);
        for (size_t n = 0; n < kCodeVectors; ++n) {
            scale(x.low[n]).store(panel + n * kLanes);
            scale(x.high[n]).store(panel + kTile * kPiece + n * kLanes);
        }
    }
}

inline void convert_quantized_values(const KvLayout& cache, uint64_t token, size_t count, size_t dim,
                                     float* panel) {
    const uint64_t block = token / kKeyBlock * kKeyBlock, first = cache.value_index(token, dim);
    float scales[kTile + kKeyBlock], lows[kTile + kKeyBlock];
    load_value_scales(cache, block, token + count - block, dim / kGroup, scales);
    const float* const from = scales + (token - block);
    if (cache.values == CacheType::q8_0)
        return convert_int8_values(cache.int8_values() + first, cache.dims, from, count, panel);
    if (cache.value_code.scales == 2)
        load_value_scales(cache, block, token + count - block, dim / kGroup, lows, 1);
    with_code(cache.value_code, [&]<bool kFifth, bool kLow>() {
        convert_coded_values<kFifth, kLow>(cache.values, cache.value_codes() + first / 2,
                                           cache.value_highs() + first / 8, cache.dims, from,
                                           lows + (token - block), count, panel);
    });
}

// Elements of keys as floats.
inline void convert_latent_elements(const KvLayout& cache, uint64_t first, size_t count, float* to) {
    if (cache.keys == CacheType::bf16) return widen_bfloats(cache.half_keys() + first, count, to);
    for (size_t i = 0; i < count; i += kLanes)
        (cache.keys == CacheType::f32 ? Vec::load(cache.float_keys() + first + i)
                                      : Vec::load_half(cache.half_keys() + first + i))
            .store(to + i);
}

// The same of keys, which stand the other way round.
inline void convert_latents(const KvLayout& cache, uint64_t token, size_t count, size_t dim, float* panel) {
    const size_t present = smaller(kPanelDims, cache.rank - dim), width = round_up(present, kPiece);
    alignas(64) float block[kPanelDims * kPiece];
    for (uint64_t first = token / kPiece * kPiece; first < token + count; first += kPiece) {
        if (cache.key_code.is_quantized())
            convert_key_groups(cache, first / kPiece * cache.groups + dim / kGroup, 1, block);
        else
            convert_latent_elements(cache, cache.key_index(first, dim), present * kPiece, block);
        for (size_t i = present * kPiece; i < width * kPiece; ++i) block[i] = 0.0f;
        const size_t begin = token > first ? token - first : 0, end = smaller(kPiece, token + count - first);
        for (size_t lane = begin; lane < end; ++lane)
            for (size_t i = 0; i < width; ++i)
                panel[(first + lane - token) * kPiece + i / kPiece * kTile * kPiece + i % kPiece] =
                    block[i * kPiece + lane];
    }
}

inline void convert_values(const KvLayout& cache, uint64_t token, size_t count, size_t dim, float* panel) {
    if (cache.rank > 0) return convert_latents(cache, token, count, dim, panel);
    const uint64_t first = cache.value_index(token, dim);
    if (cache.values == CacheType::f32)
        convert_plain_values<CachedFloat>(cache.float_values() + first, cache.dims, count, dim, panel);
    else if (cache.values == CacheType::f16)
        convert_plain_values<CachedHalf>(cache.half_values() + first, cache.dims, count, dim, panel);
    else if (cache.values == CacheType::bf16)
        convert_plain_values<CachedBfloat>(cache.half_values() + first, cache.dims, count, dim, panel);
    else
        convert_quantized_values(cache, token, count, dim, panel);
}

inline bool all_finite(const float* x, size_t count) {
    Vec zero = Vec::set1(0.0f);  // stays 0, or becomes NaN
    for (size_t i = 0; i < count; i += kLanes) zero = Vec::fma(Vec::load(x + i), Vec::set1(0.0f), zero);
    return zero.sum() == 0.0f;
}

// The running softmax of one query: the sums so far are of exp(score - maximum).
struct Softmax {
    float maximum = -kInfinity;
    float total = 0.0f;
};

// What exponents are taken against: 0 while no key has been seen, so that exp(-infinity - base) is 0 and not
// NaN.
inline float exponent_base(float maximum) {
    return maximum == -kInfinity ? 0.0f : maximum;
}
// e^x for x <= 0.
inline float exp1(float x) {
    return exp_of_bounded(Vec::set1(x)).first();
}

// Scores [first, last) through the softcap, and to -infinity outside [lo, hi).
inline void cap_and_mask(float* s, size_t first, size_t last, size_t lo, size_t hi, float softcap) {
    for (size_t i = first; i < last; i += kLanes) {
        Vec x = Vec::load(s + i);
        if (softcap > 0.0f) x = Vec::set1(softcap) * tanh(x / Vec::set1(softcap));
        const Vec index = Vec::lane_index() + Vec::set1(static_cast<float>(i));
        x = Vec::where_less(index, Vec::set1(static_cast<float>(lo)), Vec::set1(-kInfinity), x);
        x = Vec::where_less(index, Vec::set1(static_cast<float>(hi)), x, Vec::set1(-kInfinity));
        x.store(s + i);
    }
}

// Turns scores [first, last) of one row into exp(score - maximum), those outside [lo, hi) into 0. Returns the
// factor by which earlier sums of this query shrink.
inline float softmax_row(float* s, size_t first, size_t last, size_t lo, size_t hi, float softcap,
                         Softmax& state) {
    const size_t begin = first / kLanes * kLanes;
    if (softcap > 0.0f || lo > begin || hi < round_up(last, kLanes))
        cap_and_mask(s, begin, last, lo, hi, softcap);
    Vec top = Vec::set1(-kInfinity);
    for (size_t i = begin; i < last; i += kLanes) top = Vec::max(top, Vec::load(s + i));
    const float largest = top.largest();
    const float maximum = largest > state.maximum ? largest : state.maximum;
    const Vec base = Vec::set1(exponent_base(maximum));
    Vec total = Vec::set1(0.0f);
    for (size_t i = begin; i < last; i += kLanes) {
        const Vec p = exp_of_bounded(Vec::load(s + i) - base);
        p.store(s + i);
        total = total + p;
    }
    const float rescale = maximum == state.maximum ? 1.0f : exp1(state.maximum - exponent_base(maximum));
    state.total = state.total * rescale + total.sum();
    state.maximum = maximum;
    return rescale;
}

}  // namespace
}  // namespace redline::cpu
