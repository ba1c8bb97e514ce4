// Tiles of attention over the Vec of the including level: panels of a cache converted to floats, and the
// softmax of one row of scores.
#pragma once

#include "attention_products.h"
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

// Keys of `blocks` blocks from `block` on as floats, [block][dim][16].
inline void convert_keys(const KvLayout& cache, CacheType format, uint64_t block, size_t blocks,
                         float* panel) {
    const size_t dims = cache.dims;
    const uint64_t first = block * dims * kPiece;
    const size_t count = blocks * dims * kPiece;
    if (format == CacheType::f32) {
        std::memcpy(panel, cache.float_keys() + first, count * sizeof(float));
        return;
    }
    if (format == CacheType::f16) {
        const uint16_t* keys = cache.half_keys() + first;
        for (size_t i = 0; i < count; i += kLanes) Vec::load_half(keys + i).store(panel + i);
        return;
    }
    const int8_t* keys = cache.int8_keys() + first;
    const uint16_t* scales = cache.key_scales() + block * cache.groups * kPiece;
    for (size_t group = 0; group < blocks * cache.groups; ++group, scales += kPiece) {
        for (size_t lane = 0; lane < kPiece; lane += kLanes) {
            const Vec scale = Vec::load_half(scales + lane);
            for (size_t i = 0; i < kGroup; ++i) {
                const size_t at = (group * kGroup + i) * kPiece + lane;
                (Vec::load_int8(keys + at) * scale).store(panel + at);
            }
        }
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

// The value scales of one group for `count` tokens from `token` on, a multiple of 16.
inline void load_value_scales(const KvLayout& cache, uint64_t token, size_t count, size_t group,
                              float* scales) {
    for (size_t i = 0; i < count; i += kLanes)
        Vec::load_half(cache.value_scales() + cache.scale_index(token + i, group)).store(scales + i);
}

inline void convert_int8_values(const KvLayout& cache, uint64_t token, size_t count, size_t dim,
                                float* panel) {
    const int8_t* values = cache.int8_values() + cache.value_index(token, dim);
    const uint64_t block = token / kKeyBlock * kKeyBlock;
    float scales[kTile + kKeyBlock];
    load_value_scales(cache, block, token + count - block, dim / kGroup, scales);
    for (size_t i = 0; i < count; ++i, values += cache.dims) {
        const Vec scale = Vec::set1(scales[token - block + i]);
        for (size_t n = 0; n < kPanelDims / kLanes; ++n)
            (Vec::load_int8(values + n * kLanes) * scale)
                .store(panel + i * kPiece + column_offset(n, kTile * kPiece));
    }
}

// The same of keys, which stand the other way round.
inline void convert_latents(const KvLayout& cache, CacheType format, uint64_t token, size_t count, size_t dim,
                            float* panel) {
    const size_t present = smaller(kPanelDims, cache.rank - dim), width = round_up(present, kPiece);
    alignas(64) float block[kPanelDims * kPiece];
    for (size_t i = present; i < width; ++i)
        for (size_t lane = 0; lane < kPiece; ++lane) block[i * kPiece + lane] = 0.0f;
    for (uint64_t first = token / kPiece * kPiece; first < token + count; first += kPiece) {
        for (size_t i = 0; i < present; ++i)
            for (size_t lane = 0; lane < kPiece; lane += kLanes) {
                const uint64_t at = cache.key_index(first, dim + i) + lane;
                float* const to = block + i * kPiece + lane;
                if (format == CacheType::f32)
                    Vec::load(cache.float_keys() + at).store(to);
                else if (format == CacheType::f16)
                    Vec::load_half(cache.half_keys() + at).store(to);
                else
                    (Vec::load_int8(cache.int8_keys() + at) *
                     Vec::load_half(cache.key_scales() + cache.scale_index(first, dim / kGroup) + lane))
                        .store(to);
            }
        const size_t begin = token > first ? token - first : 0, end = smaller(kPiece, token + count - first);
        for (size_t lane = begin; lane < end; ++lane)
            for (size_t i = 0; i < width; ++i)
                panel[(first + lane - token) * kPiece + i / kPiece * kTile * kPiece + i % kPiece] =
                    block[i * kPiece + lane];
    }
}

inline void convert_values(const KvLayout& cache, CacheType format, uint64_t token, size_t count, size_t dim,
                           float* panel) {
    if (cache.rank > 0) return convert_latents(cache, format, token, count, dim, panel);
    const uint64_t first = cache.value_index(token, dim);
    if (format == CacheType::f32)
        convert_plain_values<CachedFloat>(cache.float_values() + first, cache.dims, count, dim, panel);
    else if (format == CacheType::f16)
        convert_plain_values<CachedHalf>(cache.half_values() + first, cache.dims, count, dim, panel);
    else
        convert_int8_values(cache, token, count, dim, panel);
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
