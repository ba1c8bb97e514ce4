// The products of quantized weights with many activation rows on AMX tiles in bfloat16. Some columns of two
// panels are decoded once into tiles, scales included, and meet all activation rows there: no scaling per
// group is left, and sums are f32. Both operands are rounded to 8 bits of mantissa (Activations::bf16).
#pragma once

#include "linear_avx512.h"

#include "linear_int8.h"

namespace redline::cpu {
namespace {

constexpr size_t kTile = 16;      // rows of a tile
constexpr size_t kTileCols = 32;  // columns of weights or activations that a tile holds, as pairs
constexpr size_t kTileValues = kTile * kTileCols;
constexpr size_t kCutCols = 256;      // columns decoded at a time
constexpr size_t kSegmentRows = 512;  // activation rows whose sums are kept at a time
constexpr size_t kBlockPanels = 16;   // decoded together: 128 KiB, in the second-level cache

// An odd number of cache lines, so that the rows of a tile do not fall into the same set of the cache.
[[maybe_unused]] size_t bf16_bytes(size_t cols) {
    return ((cols * 2 + 63) / 64 | 1) * 64;
}

[[maybe_unused]] void prepare_bf16(const float* x, size_t cols, std::byte* out) {
    auto* to = reinterpret_cast<uint16_t*>(out);
    for (size_t i = 0; i < cols; i += 16) {  // quantized formats have multiples of 32
        const __m256bh halves = _mm512_cvtneps_pbh(_mm512_loadu_ps(x + i));
        __builtin_memcpy(to + i, &halves, sizeof halves);
    }
}

struct TileConfig {
    uint8_t palette = 1;
    uint8_t start_row = 0;
    uint8_t reserved[14] = {};
    uint16_t bytes_per_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64);

// Four columns of 16 rows as two vectors of pairs: w * code + base, rounded to bfloat16.
RL_ALWAYS_INLINE inline void store_pairs(__m512i codes, __m512 w, __m512 base, uint16_t* out) {
    const __m512i low = _mm512_set1_epi32(0xFF);
    const __m512i bytes[4] = {
        _mm512_and_si512(codes, low), _mm512_and_si512(_mm512_srli_epi32(codes, 8), low),
        _mm512_and_si512(_mm512_srli_epi32(codes, 16), low), _mm512_srli_epi32(codes, 24)};
    __m512 values[4];
    for (int i = 0; i < 4; ++i) values[i] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(bytes[i]), w, base);
    // The conversion of two vectors leaves one after the other; a tile wants their elements in turn.
    alignas(64) static constexpr uint16_t kInTurn[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                         21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                         11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    const __m512i order = _mm512_load_si512(kInTurn);
    for (int i = 0; i < 2; ++i) {
        const __m512bh both = _mm512_cvtne2ps_pbh(values[2 * i + 1], values[2 * i]);
        __m512i words;
        __builtin_memcpy(&words, &both, sizeof words);
        _mm512_store_si512(out + 32 * i, _mm512_permutexvar_epi16(order, words));
    }
}

// Decodes `cols` columns (a multiple of 32) of a panel into tiles: [32 columns][pair][row][2].
template <class F>
inline void decode_tiles(const uint8_t* block, size_t cols, uint16_t* out) {
    using Columns = Unpacked<Avx512, F>;
    constexpr size_t kStepCols = size_t(Columns::kBlocks) * F::kBlock;
    Columns unpacked;
    for (size_t c = 0; c < cols; c += kStepCols) {
        const size_t step = smaller(kStepCols, cols - c);
        unpacked.fill(block + c / F::kBlock * F::kBytes, step / F::kBlock);
        for (size_t g = 0; g < step / F::kGroup; ++g) {
            const __m512 w = unpacked.w[g];
            const __m512 base =
                F::kMins ? unpacked.m[F::kMins ? g : 0] : _mm512_mul_ps(w, _mm512_set1_ps(-128.0f));
            constexpr size_t kQuads = F::kGroup / 4;
            for (size_t j = 0; j < kQuads; ++j)
                store_pairs(_mm512_loadu_si512(unpacked.codes[g * kQuads + j]), w, base,
                            out + (c + g * F::kGroup + 4 * j) * kTile);
        }
    }
}

// sums[t][32] (+)= 32 activation rows times the decoded columns of two panels.
RL_ALWAYS_INLINE inline void multiply_tiles(const uint16_t* w, size_t tiles, const std::byte* x,
                                            size_t x_stride, float* sums, bool fresh) {
    constexpr size_t kSumBytes = 2 * kTile * sizeof(float);
    float* const lower = sums + kTile * 2 * kTile;
    if (fresh) {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    } else {
        _tile_loadd(0, sums, kSumBytes);
        _tile_loadd(1, sums + kTile, kSumBytes);
        _tile_loadd(2, lower, kSumBytes);
        _tile_loadd(3, lower + kTile, kSumBytes);
    }
    for (size_t k = 0; k < tiles; ++k) {
        _tile_loadd(4, x + k * 64, x_stride);
        _tile_loadd(6, w + k * kTileValues, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, w + kCutCols * kTile + k * kTileValues, 64);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(5, x + kTile * x_stride + k * 64, x_stride);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, sums, kSumBytes);
    _tile_stored(1, sums + kTile, kSumBytes);
    _tile_stored(2, lower, kSumBytes);
    _tile_stored(3, lower + kTile, kSumBytes);
}

constexpr size_t kRowStep = 2 * kTile;  // activation rows of one pass

// Where a segment of activation rows is cut into passes of 32. The last pass may overlap the one before, and
// then has sums of its own, of which only the rows that are new count.
struct Passes {
    size_t rows;

    RL_ALWAYS_INLINE size_t count() const { return (rows + kRowStep - 1) / kRowStep; }
    RL_ALWAYS_INLINE size_t first_row(size_t pass) const { return smaller(pass * kRowStep, rows - kRowStep); }
    RL_ALWAYS_INLINE size_t sum_of(size_t row) const {
        const size_t pass = row / kRowStep;
        return pass * kRowStep + (row - first_row(pass));
    }
};

struct AmxScratch {
    alignas(64) uint16_t weights[kBlockPanels][kCutCols * kTile];
    alignas(64) float sums[kBlockPanels / 2][kSegmentRows][kRowStep];
};

// 32 to kSegmentRows activation rows times at most kBlockPanels panels.
template <class F>
inline void multiply_block(const PanelView& w, size_t panel_begin, size_t panel_end, const std::byte* x,
                           size_t x_stride, size_t x_rows, float* y, size_t y_stride, bool accumulate,
                           AmxScratch& scratch) {
    const size_t cols = w.blocks * F::kBlock;
    const Passes passes{x_rows};
    for (size_t c = 0; c < cols; c += kCutCols) {
        const size_t cut = smaller(kCutCols, cols - c);
        for (size_t p = panel_begin; p < panel_end; ++p)
            decode_tiles<F>(w.panel(p) + c / F::kBlock * F::kBytes, cut, scratch.weights[p - panel_begin]);
        // The activations of a pass stay in the first-level cache while all panels meet them. An odd last
        // panel has a stale neighbour, whose result is not used.
        for (size_t pass = 0; pass < passes.count(); ++pass)
            for (size_t p = 0; p < panel_end - panel_begin; p += 2)
                multiply_tiles(scratch.weights[p], cut / kTileCols,
                               x + passes.first_row(pass) * x_stride + c * 2, x_stride,
                               scratch.sums[p / 2][pass * kRowStep], c == 0);
    }
    for (size_t t = 0; t < x_rows; ++t)
        for (size_t p = panel_begin; p < panel_end; ++p) {
            const size_t at = p - panel_begin;
            __m512 sum = _mm512_load_ps(scratch.sums[at / 2][passes.sum_of(t)] + at % 2 * kTile);
            float* out = y + t * y_stride + p * kPanelRows;
            if (accumulate) sum = _mm512_add_ps(sum, Avx512::load_rows(out, w.rows_in(p)));
            Avx512::store_rows(out, w.rows_in(p), sum);
        }
}

template <class, class F>
struct AmxProduct {
    static constexpr uint32_t kId = F::kId;

    static void multiply(const PackedMatrix& matrix, uint64_t panel_begin, uint64_t panel_end,
                         const std::byte* x, size_t x_stride, size_t x_rows, float* y, size_t y_stride,
                         bool accumulate) {
        AmxScratch& scratch = *reinterpret_cast<AmxScratch*>(kernel_scratch(sizeof(AmxScratch)));
        const PanelView w(matrix);
        const TileConfig config;
        _tile_loadconfig(&config);
        // Even segments, so that none has fewer rows than a pass.
        const size_t segments = (x_rows + kSegmentRows - 1) / kSegmentRows;
        for (size_t s = 0; s < segments; ++s) {
            const size_t begin = x_rows * s / segments, end = x_rows * (s + 1) / segments;
            for (size_t p = panel_begin; p < panel_end; p += kBlockPanels)
                multiply_block<F>(w, p, smaller(p + kBlockPanels, panel_end), x + begin * x_stride, x_stride,
                                  end - begin, y + begin * y_stride, y_stride, accumulate, scratch);
        }
        _tile_release();
    }
    static constexpr LinearKernel kernel = {Activations::bf16, bf16_bytes, prepare_bf16, multiply};
};

}  // namespace
}  // namespace redline::cpu
