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
constexpr size_t kRowStep = 2 * kTile;  // activation rows of one pass
// Columns decoded at a time. The activations of a pass over them fill two thirds of the first-level cache;
// fewer columns would mean more traffic of sums.
constexpr size_t kCutCols = 512;
constexpr size_t kSegmentPasses = 16;  // whose sums are kept at a time
constexpr size_t kBlockPanels = 16;    // decoded together: 256 KiB, in the second-level cache

// A set of activation rows is cut into passes of 32. A pass lies together: of each 32 columns its (up to 32)
// rows, 64 bytes each, which are one or two tiles. Passes are an odd multiple of 32 KiB long, so that equal
// columns of all passes fall into different sets of the second-level cache.
[[maybe_unused]] size_t bf16_bytes(size_t cols) {
    return ((cols * 2 + 1023) / 1024 | 1) * 1024;
}

RL_ALWAYS_INLINE inline size_t rows_of_pass(size_t pass, size_t rows) {
    return smaller(kRowStep, rows - pass * kRowStep);
}

[[maybe_unused]] void prepare_bf16(const float* x, size_t cols, std::byte* set, size_t row, size_t rows) {
    const size_t pass = row / kRowStep, step = rows_of_pass(pass, rows) * 64;
    std::byte* out = set + pass * kRowStep * bf16_bytes(cols) + row % kRowStep * 64;
    for (size_t c = 0; c < cols; c += kTileCols, out += step) {  // quantized formats have multiples of 32
        const __m512bh pairs = _mm512_cvtne2ps_pbh(_mm512_loadu_ps(x + c + 16), _mm512_loadu_ps(x + c));
        __builtin_memcpy(out, &pairs, sizeof pairs);
    }
}

// Tiles 0 to 3 hold sums, 4 and 5 activations, 6 and 7 weights; the first of two lower, the second upper
// rows.
struct TileConfig {
    uint8_t palette = 1;
    uint8_t start_row = 0;
    uint8_t reserved[14] = {};
    uint16_t bytes_per_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {};

    TileConfig() = default;
    // For passes of so many activation rows, 1 to 32.
    RL_ALWAYS_INLINE explicit TileConfig(size_t pass_rows) {
        const size_t low = smaller(kTile, pass_rows);
        const size_t high = pass_rows > kTile ? pass_rows - kTile : kTile;  // a tile that is not used
        const size_t each[8] = {low, low, high, high, low, high, kTile, kTile};
        for (size_t i = 0; i < 8; ++i) rows[i] = uint8_t(each[i]);
    }
};
static_assert(sizeof(TileConfig) == 64);

RL_ALWAYS_INLINE inline void load_config(size_t pass_rows) {
    const TileConfig config(pass_rows);
    _tile_loadconfig(&config);
}

// Which bytes of four columns of 16 rows (row by row) make tile rows: for each pair of columns those of rows
// 0 to 7 and of rows 8 to 15, in the low byte of 32 bits each.
struct PairBytes {
    alignas(64) uint8_t at[4][64];

    constexpr PairBytes() : at() {
        for (int q = 0; q < 4; ++q)
            for (int lane = 0; lane < 16; ++lane)
                at[q][4 * lane] = uint8_t((q % 2 * 8 + lane / 2) * 4 + q / 2 * 2 + lane % 2);
    }
};

// A factor of each of 16 rows, twice in a row: for rows 0 to 7 and for rows 8 to 15.
struct RowPairs {
    __m512 half[2];

    RL_ALWAYS_INLINE explicit RowPairs(__m512 rows) {
        const __m512i low = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
        half[0] = _mm512_permutexvar_ps(low, rows);
        half[1] = _mm512_permutexvar_ps(_mm512_add_epi32(low, _mm512_set1_epi32(8)), rows);
    }
};

// Four columns of 16 rows as two vectors of pairs: w * code + base, rounded to bfloat16.
RL_ALWAYS_INLINE inline void store_pairs(__m512i codes, const RowPairs& w, const RowPairs& base,
                                         uint16_t* out) {
    static constexpr PairBytes kBytes;
    constexpr __mmask64 kLowBytes = 0x1111111111111111;
    for (int pair = 0; pair < 2; ++pair) {
        __m512 values[2];
        for (int i = 0; i < 2; ++i) {
            const __m512i at = _mm512_load_si512(kBytes.at[2 * pair + i]);
            const __m512i bytes = _mm512_maskz_permutexvar_epi8(kLowBytes, at, codes);
            values[i] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(bytes), w.half[i], base.half[i]);
        }
        const __m512bh both = _mm512_cvtne2ps_pbh(values[1], values[0]);
        __builtin_memcpy(out + 32 * pair, &both, sizeof both);
    }
}

// What is added to scale * code in a group of columns.
template <class F>
RL_ALWAYS_INLINE inline __m512 base_of(const Unpacked<Avx512, F>& columns, size_t group) {
    __m512 base = _mm512_setzero_ps();
    if constexpr (F::kMins) base = columns.m[group];
    if constexpr (F::kOffset || F::kSigned)
        base = _mm512_fmadd_ps(columns.w[group], _mm512_set1_ps(-float(128 >> F::kBiasShift)), base);
    return base;
}

// Decodes `cols` columns (a multiple of 32) of a panel into tiles: [32 columns][pair][row][2], every other
// tile of `out`.
template <class F>
inline void decode_tiles(const uint8_t* block, size_t cols, uint16_t* out) {
    using Columns = Unpacked<Avx512, F>;
    constexpr size_t kStepCols = size_t(Columns::kBlocks) * F::kBlock;
    Columns unpacked;
    for (size_t c = 0; c < cols; c += kStepCols) {
        const size_t step = smaller(kStepCols, cols - c);
        unpacked.fill(block + c / F::kBlock * F::kBytes, step / F::kBlock);
        for (size_t g = 0; g < step / F::kGroup; ++g) {
            const RowPairs w(unpacked.w[g]);
            const RowPairs base(base_of<F>(unpacked, g));
            constexpr size_t kQuads = F::kGroup / 4;
            for (size_t j = 0; j < kQuads; ++j) {
                const size_t col = c + g * F::kGroup + 4 * j;
                store_pairs(_mm512_loadu_si512(unpacked.codes[g * kQuads + j]), w, base,
                            out + col / kTileCols * 2 * kTileValues + col % kTileCols * kTile);
            }
        }
    }
}

// Where the sums of a pass and two panels lie: 32 rows of (up to) 32 results.
struct Sums {
    float* at;
    size_t stride;

    RL_ALWAYS_INLINE float* tile(size_t half, size_t panel) const {
        return at + half * kTile * stride + panel * kTile;
    }
    RL_ALWAYS_INLINE size_t stride_bytes() const { return stride * sizeof(float); }
};

// What is needed soon, from beyond the second-level cache. Fetched a few lines at a time in the shadow of the
// tile unit it costs nothing; many at once would keep the weights waiting.
struct Ahead {
    const std::byte* x;  // of the next pass: 256 bytes per step
    const uint8_t* w;    // of two panels: some lines of what is decoded next
    size_t panel_bytes;
    size_t w_lines;
    const float* sums;  // of the next pair of panels: 256 bytes per step

    RL_ALWAYS_INLINE static void line(const void* p) {
        _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T1);
    }
    RL_ALWAYS_INLINE void fetch(size_t step) const {
        for (size_t i = 0; i < 4; ++i) line(x + step * 256 + i * 64);
        for (size_t i = 0; i < 4; ++i)
            _mm_prefetch(reinterpret_cast<const char*>(sums + step * 64 + i * 16), _MM_HINT_T0);
        if (step < w_lines) {
            line(w + step * 64);
            line(w + panel_bytes + step * 64);
        }
    }
};

// The activations of a pass over some columns.
struct PassView {
    const std::byte* x;
    size_t rows;

    RL_ALWAYS_INLINE size_t step() const { return rows * 64; }  // from 32 columns to the next
};

// to = from + activations times the columns of a pair of panels, `steps` times 32; without from.at it counts
// as 0. kHalves: whether there are more than 16 activation rows.
template <int kHalves>
RL_ALWAYS_INLINE inline void multiply_tiles(const uint16_t* w, size_t steps, const PassView& pass,
                                            const Ahead& ahead, const Sums& from, const Sums& to) {
    if (!from.at) {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    } else {
        _tile_loadd(0, from.tile(0, 0), from.stride_bytes());
        _tile_loadd(1, from.tile(0, 1), from.stride_bytes());
        if (kHalves == 2) _tile_loadd(2, from.tile(1, 0), from.stride_bytes());
        if (kHalves == 2) _tile_loadd(3, from.tile(1, 1), from.stride_bytes());
    }
    // Each operand is loaded as soon as its predecessor was used for the last time, for the tile unit does
    // not rename its registers. Weights come from the second-level cache, and are not to displace the
    // activations in the first.
    const std::byte* x = pass.x;
    _tile_stream_loadd(6, w, 64);
    _tile_loadd(4, x, 64);
    if (kHalves == 2) _tile_loadd(5, x + kTile * 64, 64);
    _tile_stream_loadd(7, w + kTileValues, 64);
    for (size_t k = 0; k + 1 < steps; ++k) {
        w += 2 * kTileValues;
        x += pass.step();
        ahead.fetch(k);
        _tile_dpbf16ps(0, 4, 6);
        if (kHalves == 2) _tile_dpbf16ps(2, 5, 6);
        _tile_stream_loadd(6, w, 64);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(4, x, 64);
        if (kHalves == 2) _tile_dpbf16ps(3, 5, 7);
        if (kHalves == 2) _tile_loadd(5, x + kTile * 64, 64);
        _tile_stream_loadd(7, w + kTileValues, 64);
    }
    ahead.fetch(steps - 1);
    _tile_dpbf16ps(0, 4, 6);
    if (kHalves == 2) _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(1, 4, 7);
    if (kHalves == 2) _tile_dpbf16ps(3, 5, 7);
    _tile_stored(0, to.tile(0, 0), to.stride_bytes());
    if (kHalves == 2) _tile_stored(2, to.tile(1, 0), to.stride_bytes());
    _tile_stored(1, to.tile(0, 1), to.stride_bytes());
    if (kHalves == 2) _tile_stored(3, to.tile(1, 1), to.stride_bytes());
}

struct AmxScratch {
    alignas(64) uint16_t weights[kBlockPanels / 2][2 * kCutCols * kTile];
    alignas(64) float sums[kSegmentPasses][kBlockPanels / 2][kRowStep * 2 * kTile];
};

struct Results {
    float* y;
    size_t stride;
    bool accumulate;
};

// One pair of panels of one pass to its place in y.
RL_ALWAYS_INLINE inline void write_sums(const PanelView& w, size_t panel, size_t panels, const float* sums,
                                        size_t rows, const Results& to) {
    for (size_t t = 0; t < rows; ++t)
        for (size_t p = 0; p < panels; ++p) {
            const unsigned count = w.rows_in(panel + p);
            __m512 sum = _mm512_load_ps(sums + t * 2 * kTile + p * kTile);
            float* out = to.y + t * to.stride + (panel + p) * kPanelRows;
            if (to.accumulate) sum = _mm512_add_ps(sum, Avx512::load_rows(out, count));
            Avx512::store_rows(out, count, sum);
        }
}

// A set of activation rows.
struct SetView {
    const std::byte* x;
    size_t rows;
    size_t pass_bytes;

    RL_ALWAYS_INLINE size_t passes() const { return (rows + kRowStep - 1) / kRowStep; }
    RL_ALWAYS_INLINE PassView pass(size_t i, size_t col) const {
        const std::byte* at = x + i * pass_bytes;
        const size_t count = rows_of_pass(i, rows);
        return {at + col / kTileCols * 64 * count, count};
    }
};

// Some decoded columns.
struct Cut {
    size_t panel_begin;
    size_t panel_end;
    size_t cols;
    bool first;
    bool last;
};

// A cut times one pass; y is that of the pass. `ahead` is that of the first two panels.
RL_ALWAYS_INLINE inline void multiply_pass(const PanelView& w, const Cut& cut, const PassView& pass,
                                           Ahead ahead, AmxScratch& scratch,
                                           float (*pass_sums)[kRowStep * 2 * kTile], const Results& y) {
    const size_t steps = cut.cols / kTileCols;
    for (size_t p = cut.panel_begin; p < cut.panel_end; p += 2) {
        const size_t pair = (p - cut.panel_begin) / 2, panels = smaller(2, cut.panel_end - p);
        const Sums own{pass_sums[pair], 2 * kTile};
        ahead.sums = pass_sums[pair + 1];
        // An odd last panel has a stale neighbour, whose result is not used.
        const bool direct = cut.last && !y.accumulate && panels == 2 && w.rows_in(p + 1) == kPanelRows;
        const Sums from{cut.first ? nullptr : own.at, own.stride};
        const Sums to = direct ? Sums{y.y + p * kPanelRows, y.stride} : own;
        if (pass.rows > kTile)
            multiply_tiles<2>(scratch.weights[pair], steps, pass, ahead, from, to);
        else
            multiply_tiles<1>(scratch.weights[pair], steps, pass, ahead, from, to);
        if (cut.last && !direct) write_sums(w, p, panels, own.at, pass.rows, y);
        ahead.x += steps * 256;
        ahead.w += 2 * ahead.panel_bytes;
    }
}

// Passes [pass_begin, pass_end), at most kSegmentPasses, times at most kBlockPanels panels.
template <class F>
inline void multiply_block(const PanelView& w, size_t panel_begin, size_t panel_end, const SetView& set,
                           size_t pass_begin, size_t pass_end, const Results& to, AmxScratch& scratch) {
    const size_t cols = w.blocks * F::kBlock, passes = pass_end - pass_begin;
    for (size_t c = 0; c < cols; c += kCutCols) {
        const size_t end = smaller(c + kCutCols, cols);
        const Cut cut{panel_begin, panel_end, end - c, c == 0, end == cols};
        for (size_t p = panel_begin; p < panel_end; ++p) {
            const size_t at = p - panel_begin;
            decode_tiles<F>(w.panel(p) + c / F::kBlock * F::kBytes, cut.cols,
                            scratch.weights[at / 2] + at % 2 * kTileValues);
        }
        // Decoded next: the following columns of these panels, or the first ones of the panels after them.
        const uint8_t* w_next =
            cut.last ? w.panel(panel_end) : w.panel(panel_begin) + end / F::kBlock * F::kBytes;
        const size_t w_lines = cut.cols / F::kBlock * F::kBytes / 64;
        for (size_t i = pass_begin; i < pass_end; ++i) {
            const PassView pass = set.pass(i, c);
            const Ahead ahead{set.x + (i + 1) * set.pass_bytes + c / kTileCols * 64 * kRowStep,
                              w_next + w_lines * (i - pass_begin) / passes * 64, w.panel_bytes,
                              w_lines / passes + 1, nullptr};
            if (pass.rows < kRowStep) load_config(pass.rows);
            multiply_pass(w, cut, pass, ahead, scratch, scratch.sums[i - pass_begin],
                          {to.y + i * kRowStep * to.stride, to.stride, to.accumulate});
            if (pass.rows < kRowStep) load_config(kRowStep);
        }
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
        const SetView set{x, x_rows, kRowStep * x_stride};
        load_config(kRowStep);
        // Even segments: each decodes the weights once more.
        const size_t passes = set.passes(), segments = (passes + kSegmentPasses - 1) / kSegmentPasses;
        for (size_t s = 0; s < segments; ++s)
            for (size_t p = panel_begin; p < panel_end; p += kBlockPanels)
                multiply_block<F>(w, p, smaller(p + kBlockPanels, panel_end), set, passes * s / segments,
                                  passes * (s + 1) / segments, {y, y_stride, accumulate}, scratch);
        _tile_release();
    }
    static constexpr LinearKernel kernel = {Activations::bf16, bf16_bytes, prepare_bf16, multiply};
};

}  // namespace
}  // namespace redline::cpu
