// The arithmetic of attention over one tile of keys, over the Vec of the including level: the register kernel
// that both products share, the conversion of cached elements to floats, and the softmax of one row of
// scores.
#pragma once

#include "simd/kv_layout.h"
#include "simd/vec_math.h"

#include <cstring>

namespace redline::cpu {
namespace {

constexpr size_t kTile = 128;      // keys between two updates of the running maxima
constexpr size_t kPanelKeys = 32;  // keys converted to floats at a time, then used by every query
constexpr size_t kPanelDims = 32;  // dimensions of values likewise; one q8_0 group
constexpr size_t kPiece = 16;      // panels consist of pieces of 16 columns: [piece][step][16]
constexpr size_t kLanes = Vec::kLanes;
constexpr float kInfinity = __builtin_inff();

inline size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}
inline size_t round_up(size_t n, size_t unit) {
    return (n + unit - 1) / unit * unit;
}

struct FloatElement {
    using Type = float;
    static Vec load(const float* p) { return Vec::load(p); }
};
struct HalfElement {
    using Type = uint16_t;
    static Vec load(const uint16_t* p) { return Vec::load_half(p); }
};

template <int N>
struct Count {};

// Calls f(Count<n>) for a run-time n in [1, N].
template <int N, typename F>
inline void with_count(size_t n, F f) {
    if constexpr (N > 0) {
        if (n == N)
            f(Count<N>{});
        else
            with_count<N - 1>(n, f);
    }
}

// acc[m][n] += sum_k a[m * kAcross + k * kAlong] * b[k][n] for M queries and N vectors of columns. Step k of
// b starts at b + k * b_step; its columns lie in pieces of 16, b_piece elements apart. In order of k, rounded
// once per step where the level has a fused multiply-add.
template <typename Element, size_t kAcross, size_t kAlong, int M, int N>
[[gnu::always_inline]] inline void multiply(Vec (&acc)[M][N], const float* a, const typename Element::Type* b,
                                            size_t b_piece, size_t b_step, size_t steps) {
    for (size_t k = 0; k < steps; ++k, a += kAlong, b += b_step) {
        Vec column[N];
#pragma GCC unroll 8
        for (int n = 0; n < N; ++n) {
            const size_t at = static_cast<size_t>(n) * kLanes;
            column[n] = Element::load(b + at / kPiece * b_piece + at % kPiece);
        }
#pragma GCC unroll 16
        for (int m = 0; m < M; ++m) {
            const Vec x = Vec::set1(a[static_cast<size_t>(m) * kAcross]);
#pragma GCC unroll 8
            for (int n = 0; n < N; ++n) acc[m][n] = Vec::fma(x, column[n], acc[m][n]);
        }
    }
}

// s[m][n] = q . k for M packed queries [dim][M] and N vectors of keys.
template <typename Element, int M, int N>
inline void score_columns(const float* q, const typename Element::Type* keys, size_t dims, float* s) {
    Vec acc[M][N];
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m)
#pragma GCC unroll 8
        for (int n = 0; n < N; ++n) acc[m][n] = Vec::set1(0.0f);
    multiply<Element, 1, M>(acc, q, keys, dims * kPiece, kPiece, dims);
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m)
#pragma GCC unroll 8
        for (int n = 0; n < N; ++n)
            acc[m][n].store(s + static_cast<size_t>(m) * kTile + static_cast<size_t>(n) * kLanes);
}

// Scores of M packed queries against `blocks` blocks of 16 keys, [block][dim][16]; s has rows of kTile.
template <typename Element, int M>
inline void score_keys(const float* q, const typename Element::Type* keys, size_t dims, size_t blocks,
                       float* s) {
    constexpr size_t kStep = Vec::kColumns * kLanes;
    const size_t end = blocks * kPiece;
    size_t key = 0;
    for (; key + kStep <= end; key += kStep)
        score_columns<Element, M, Vec::kColumns>(q, keys + key / kPiece * dims * kPiece + key % kPiece, dims,
                                                 s + key);
    for (; key < end; key += kLanes)
        score_columns<Element, M, 1>(q, keys + key / kPiece * dims * kPiece + key % kPiece, dims, s + key);
}

// sums[m][n] = rescale[m] * sums[m][n] + sum_k p[m][k] * v[k][n]; p has rows of kTile.
template <typename Element, int M, int N>
inline void sum_columns(const float* p, const typename Element::Type* values, size_t piece, size_t step,
                        size_t keys, const float* rescale, float* sums, size_t width) {
    Vec acc[M][N];
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m)
#pragma GCC unroll 8
        for (int n = 0; n < N; ++n)
            acc[m][n] = Vec::load(sums + static_cast<size_t>(m) * width + static_cast<size_t>(n) * kLanes) *
                        Vec::set1(rescale[m]);
    multiply<Element, kTile, 1>(acc, p, values, piece, step, keys);
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m)
#pragma GCC unroll 8
        for (int n = 0; n < N; ++n)
            acc[m][n].store(sums + static_cast<size_t>(m) * width + static_cast<size_t>(n) * kLanes);
}

// The same over `dims` dimensions (a multiple of 16).
template <typename Element, int M>
inline void sum_values(const float* p, const typename Element::Type* values, size_t piece, size_t step,
                       size_t keys, const float* rescale, float* sums, size_t width, size_t dims) {
    constexpr size_t kStep = Vec::kColumns * kLanes;
    size_t dim = 0;
    for (; dim + kStep <= dims; dim += kStep)
        sum_columns<Element, M, Vec::kColumns>(p, values + dim / kPiece * piece + dim % kPiece, piece, step,
                                               keys, rescale, sums + dim, width);
    for (; dim < dims; dim += kLanes)
        sum_columns<Element, M, 1>(p, values + dim / kPiece * piece + dim % kPiece, piece, step, keys,
                                   rescale, sums + dim, width);
}

// Keys of `blocks` blocks from `block` on as floats, [block][dim][16].
inline void convert_keys(const KvLayout& cache, CacheFormat format, uint64_t block, size_t blocks,
                         float* panel) {
    const size_t dims = cache.dims;
    if (format == CacheFormat::f16) {
        const uint16_t* keys = cache.half_keys() + block * dims * kPiece;
        for (size_t i = 0; i < blocks * dims * kPiece; i += kLanes) Vec::load_half(keys + i).store(panel + i);
        return;
    }
    const int8_t* keys = cache.int8_keys() + block * dims * kPiece;
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
inline void convert_half_values(const KvLayout& cache, uint64_t token, size_t count, size_t dim,
                                float* panel) {
    for (size_t piece = 0; piece < kPanelDims && dim + piece < cache.dims;
         piece += kPiece, panel += kTile * kPiece) {
        const uint16_t* values = cache.half_values() + cache.value_index(token, dim + piece);
        const size_t present = smaller(kPiece, cache.dims - dim - piece);
        for (size_t i = 0; i < count; ++i, values += cache.dims) {
            uint16_t padded[kPiece] = {};
            const uint16_t* source = values;
            if (present < kPiece) {
                std::memcpy(padded, values, present * sizeof *values);
                source = padded;
            }
            for (size_t lane = 0; lane < kPiece; lane += kLanes)
                Vec::load_half(source + lane).store(panel + i * kPiece + lane);
        }
    }
}

inline void convert_int8_values(const KvLayout& cache, uint64_t token, size_t count, size_t dim,
                                float* panel) {
    const int8_t* values = cache.int8_values() + cache.value_index(token, dim);
    uint16_t scales[kTile];
    for (size_t i = 0; i < count; ++i)
        scales[i] = cache.value_scales()[cache.scale_index(token + i, dim / kGroup)];
    float scale[kTile];
    for (size_t i = 0; i < round_up(count, kLanes); i += kLanes) {
        for (size_t j = count; j < i + kLanes; ++j) scales[j] = 0;
        Vec::load_half(scales + i).store(scale + i);
    }
    for (size_t i = 0; i < count; ++i, values += cache.dims) {
        const Vec factor = Vec::set1(scale[i]);
        for (size_t lane = 0; lane < kPanelDims; lane += kLanes) {
            float* to = panel + lane / kPiece * kTile * kPiece + i * kPiece + lane % kPiece;
            (Vec::load_int8(values + lane) * factor).store(to);
        }
    }
}

inline void convert_values(const KvLayout& cache, CacheFormat format, uint64_t token, size_t count,
                           size_t dim, float* panel) {
    if (format == CacheFormat::f16)
        convert_half_values(cache, token, count, dim, panel);
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
inline float exp1(float x) {
    return exp(Vec::set1(x)).first();
}

// Turns scores [first, last) of one row into exp(score - maximum), those outside [lo, hi) into 0. Returns the
// factor by which earlier sums of this query shrink.
inline float softmax_row(float* s, size_t first, size_t last, size_t lo, size_t hi, float softcap,
                         Softmax& state) {
    const size_t begin = first / kLanes * kLanes;
    Vec top = Vec::set1(-kInfinity);
    for (size_t i = begin; i < last; i += kLanes) {
        Vec x = Vec::load(s + i);
        if (softcap > 0.0f) x = Vec::set1(softcap) * tanh(x / Vec::set1(softcap));
        if (i < lo || i + kLanes > hi) {
            const Vec index = Vec::lane_index() + Vec::set1(static_cast<float>(i));
            x = Vec::where_less(index, Vec::set1(static_cast<float>(lo)), Vec::set1(-kInfinity), x);
            x = Vec::where_less(index, Vec::set1(static_cast<float>(hi)), x, Vec::set1(-kInfinity));
        }
        x.store(s + i);
        top = Vec::max(top, x);
    }
    const float largest = top.largest();
    const float maximum = largest > state.maximum ? largest : state.maximum;
    const Vec base = Vec::set1(exponent_base(maximum));
    Vec total = Vec::set1(0.0f);
    for (size_t i = begin; i < last; i += kLanes) {
        const Vec p = exp(Vec::load(s + i) - base);
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
