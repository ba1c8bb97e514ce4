// The two products of attention over one tile of keys, over the Vec of the including level: queries times
// keys, and probabilities times values. Both are the same register kernel: a few rows of floats, each element
// broadcast, times columns that lie in pieces of 16, as a KvHead stores them or converted to floats
// beforehand.
#pragma once

#include "kv_codes.h"

namespace redline::cpu {
namespace {

constexpr size_t kTile = 128;  // keys between two updates of the running maxima: the row length of scores
constexpr size_t kPiece = 16;  // columns
constexpr size_t kLanes = Vec::kLanes;

// How columns are stored. What comes from the cache brings an `ahead` pointer along: memory that is needed
// next, of which as much is asked for as is read. Without it decoding with 8 queries per key reads 6.2 GB/s
// of 10.5, with it 9.6 (Sapphire Rapids, one thread, d = 128, 2026-11).
struct PanelFloat {
    using Type = float;
    static constexpr bool kCached = false;
    static constexpr bool kScaled = false;
    Vec load(const float* p) const { return Vec::load(p); }
};
struct CachedFloat {
    using Type = float;
    static constexpr bool kCached = true;
    static constexpr bool kScaled = false;
    Vec load(const float* p) const { return Vec::load(p); }
};
struct CachedHalf {
    using Type = uint16_t;
    static constexpr bool kCached = true;
    static constexpr bool kScaled = false;
    Vec load(const uint16_t* p) const { return Vec::load_half(p); }
};
struct CachedBfloat {
    using Type = uint16_t;
    static constexpr bool kCached = true;
    static constexpr bool kScaled = false;
    Vec load(const uint16_t* p) const { return Vec::load_bfloat(p); }
};
struct CachedInt8 {
    using Type = int8_t;
    static constexpr bool kCached = true;
    static constexpr bool kScaled = false;
    Vec load(const int8_t* p) const { return Vec::load_int8(p); }
};
struct ScaledInt8 {
    using Type = int8_t;
    static constexpr bool kCached = true;
    static constexpr bool kScaled = true;  // by the scales of a group of steps
    Vec scale;
    Vec load(const int8_t* p) const { return Vec::load_int8(p) * scale; }
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

// Vectors of columns that M rows of accumulators leave registers for: a power of two, at most 8.
template <int M, int N = 8>
constexpr int columns_for() {
    if constexpr (N > 1 && M * N > Vec::kAccumulators)
        return columns_for<M, N / 2>();
    else
        return N;
}

// Where vector n of a group of columns lies, its pieces `piece` elements apart.
inline size_t column_offset(size_t n, size_t piece) {
    return n * kLanes / kPiece * piece + n * kLanes % kPiece;
}

// acc[m][n] += sum_k a[m * kAcross + k * kAlong] * b[k][n] for M rows and N vectors of columns; step k of b
// starts at b + k * b_step. In order of k, rounded once per step where the level has a fused multiply-add.
template <size_t kAcross, size_t kAlong, typename Element, int M, int N>
[[gnu::always_inline]] inline void multiply(Vec (&acc)[M][N], const float* a, const Element (&element)[N],
                                            const typename Element::Type* b, size_t b_piece, size_t b_step,
                                            size_t steps, const std::byte* ahead) {
    constexpr size_t kStepBytes = N * kLanes * sizeof(typename Element::Type);
    for (size_t k = 0; k < steps; ++k, a += kAlong, b += b_step) {
        if constexpr (Element::kCached) {
#pragma GCC unroll 8
            for (size_t line = 0; line < kStepBytes; line += 64)
                __builtin_prefetch(ahead + k * kStepBytes + line, 0, 2);
        }
        Vec column[N];
#pragma GCC unroll 8
        for (size_t n = 0; n < N; ++n) column[n] = element[n].load(b + column_offset(n, b_piece));
#pragma GCC unroll 16
        for (size_t m = 0; m < M; ++m) {
            const Vec x = Vec::set1(a[m * kAcross]);
#pragma GCC unroll 8
            for (size_t n = 0; n < N; ++n) acc[m][n] = Vec::fma(x, column[n], acc[m][n]);
        }
    }
}

// Keys of a tile as score_keys reads them: [block][dim][16].
template <typename Element>
struct KeyTile {
    const typename Element::Type* keys;
    const uint16_t* scales;  // when scaled: [block][group][16]
    size_t dims;
    const std::byte* ahead;
};

// s[m][n] = q . k for M packed queries [dim][M] and the N vectors of keys from `key` on; s has rows of kTile.
template <typename Element, int M, int N>
inline void score_columns(const float* q, const KeyTile<Element>& tile, size_t key, float* s) {
    const size_t dims = tile.dims;
    const auto* keys = tile.keys + key / kPiece * dims * kPiece + key % kPiece;
    const std::byte* ahead = tile.ahead;
    if constexpr (Element::kCached) ahead += key * dims * sizeof(*keys);
    Vec acc[M][N];
#pragma GCC unroll 16
    for (size_t m = 0; m < M; ++m)
#pragma GCC unroll 8
        for (size_t n = 0; n < N; ++n) acc[m][n] = Vec::set1(0.0f);
    Element element[N];
    if constexpr (Element::kScaled) {
        const size_t groups = dims / kGroup;
        const uint16_t* scales = tile.scales + key / kPiece * groups * kPiece + key % kPiece;
        for (size_t group = 0; group < groups; ++group, scales += kPiece) {
            for (size_t n = 0; n < N; ++n)
                element[n].scale = Vec::load_half(scales + column_offset(n, groups * kPiece));
            multiply<1, M>(acc, q + group * kGroup * M, element, keys + group * kGroup * kPiece,
                           dims * kPiece, kPiece, kGroup, ahead + group * kGroup * N * kLanes);
        }
    } else {
        multiply<1, M>(acc, q, element, keys, dims * kPiece, kPiece, dims, ahead);
    }
#pragma GCC unroll 16
    for (size_t m = 0; m < M; ++m)
#pragma GCC unroll 8
        for (size_t n = 0; n < N; ++n) acc[m][n].store(s + m * kTile + key + n * kLanes);
}

// The same for keys [key, end), N vectors at a time while there are as many.
template <typename Element, int M, int N = columns_for<M>()>
inline void score_keys(const float* q, const KeyTile<Element>& tile, size_t key, size_t end, float* s) {
    for (; key + N * kLanes <= end; key += N * kLanes) score_columns<Element, M, N>(q, tile, key, s);
    if constexpr (N > 1)
        if (key < end) score_keys<Element, M, N / 2>(q, tile, key, end, s);
}

// Values of a stretch of keys as sum_values reads them: token i at i * step, 16 dimensions in a row, further
// ones `piece` elements on.
template <typename Element>
struct ValueTile {
    const typename Element::Type* values;
    size_t piece;
    size_t step;
    size_t keys;
    const std::byte* ahead;
};

// Weighted sums of values so far, one row of `width` per query, and the factors by which they shrink first.
struct Sums {
    float* rows;
    size_t width;
    const float* rescale;
};

// sums[m][n] = rescale[m] * sums[m][n] + sum_k p[m][k] * v[k][n] for the N vectors from `dim` on; p has rows
// of kTile.
template <typename Element, int M, int N>
inline void sum_columns(const float* p, const ValueTile<Element>& tile, size_t dim, const Sums& sums) {
    const auto* values = tile.values + dim / kPiece * tile.piece + dim % kPiece;
    const std::byte* ahead = tile.ahead;
    if constexpr (Element::kCached) ahead += dim * tile.keys * sizeof(*values);
    float* rows = sums.rows + dim;
    Vec acc[M][N];
#pragma GCC unroll 16
    for (size_t m = 0; m < M; ++m)
#pragma GCC unroll 8
        for (size_t n = 0; n < N; ++n)
            acc[m][n] = Vec::load(rows + m * sums.width + n * kLanes) * Vec::set1(sums.rescale[m]);
    const Element element[N] = {};
    multiply<kTile, 1>(acc, p, element, values, tile.piece, tile.step, tile.keys, ahead);
#pragma GCC unroll 16
    for (size_t m = 0; m < M; ++m)
#pragma GCC unroll 8
        for (size_t n = 0; n < N; ++n) acc[m][n].store(rows + m * sums.width + n * kLanes);
}

// The same for dimensions [dim, end), whole vectors.
template <typename Element, int M, int N = columns_for<M>()>
inline void sum_values(const float* p, const ValueTile<Element>& tile, size_t dim, size_t end,
                       const Sums& sums) {
    for (; dim + N * kLanes <= end; dim += N * kLanes) sum_columns<Element, M, N>(p, tile, dim, sums);
    if constexpr (N > 1)
        if (dim < end) sum_values<Element, M, N / 2>(p, tile, dim, end, sums);
}

}  // namespace
}  // namespace redline::cpu
