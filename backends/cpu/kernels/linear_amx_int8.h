// The products of quantized weights with up to a few dozen activation rows on AMX tiles in int8. A group of
// columns of a panel is unpacked once and is one tile product with up to 16 activation rows. Its sums are
// scaled and added up in f32 as multiply_mat() does it, so that a row's results are those that it has alone,
// bit for bit. While tiles are in use, the CPU has one unit instead of two for products of floats: scaling
// takes most of the time (64 of 83 cycles for 16 activation rows and 32 columns of Q4_K, 2026-11-30).
#pragma once

#include "linear_amx.h"

namespace redline::cpu {
namespace {

constexpr int kRowQuad = 4;       // activation rows whose addresses are computed together
constexpr size_t kMostTiles = 3;  // of activation rows

// The activation rows, at least kRowQuad, in tiles of equal size. The last tile begins early where they are
// not a multiple, and so does the last quad of a tile: some rows are then computed twice, with equal results.
struct RowTiles {
    size_t rows;   // in all
    size_t count;  // of tiles
    size_t each;   // rows of a tile, at most 16

    RL_ALWAYS_INLINE explicit RowTiles(size_t x_rows)
        : rows(x_rows), count((x_rows + kTile - 1) / kTile), each((x_rows + count - 1) / count) {}
    RL_ALWAYS_INLINE size_t begin(size_t tile) const { return smaller(tile * each, rows - each); }
    RL_ALWAYS_INLINE size_t quads() const { return (each + kRowQuad - 1) / kRowQuad; }
    RL_ALWAYS_INLINE size_t quad_begin(size_t quad) const {
        return smaller(quad * kRowQuad, each - kRowQuad);
    }
    // Where the sums of an activation row are.
    RL_ALWAYS_INLINE size_t slot(size_t row) const {
        const size_t tile = row / each, in_tile = row - begin(tile), quad = in_tile / kRowQuad;
        return tile * kTile + quad * kRowQuad + in_tile - quad_begin(quad);
    }
};

// Tiles 0 to 3 hold sums, 4 and 5 activations, 6 and 7 weights.
template <class F>
RL_ALWAYS_INLINE inline void load_int8_config(size_t x_rows) {
    TileConfig config;
    for (int i = 0; i < 8; ++i) config.rows[i] = uint8_t(i < 6 ? x_rows : F::kGroup / 4);
    config.bytes_per_row[4] = config.bytes_per_row[5] = F::kGroup;
    _tile_loadconfig(&config);
}

template <class F>
constexpr bool kSignedTiles = F::kOffset || F::kSigned;

// By how much codes exceed what they say.
template <class F>
constexpr int tile_bias() {
    if constexpr (kSignedTiles<F>)
        return 128 >> F::kBiasShift;
    else
        return 0;
}

// 256 columns of a panel as weights of tile products: signed bytes, or unsigned ones where codes have no
// bias.
template <class F>
struct alignas(64) TileColumns {
    using Columns = Unpacked<Avx512, F>;
    static constexpr int kBias = tile_bias<F>();
    static_assert((1 << F::kBits) - 1 - kBias <= (kSignedTiles<F> ? 127 : 255), "codes are bytes");
    uint8_t codes[Columns::kBlocks * F::kBlock / 4][64];
    __m512 w[Columns::kGroups];
    __m512 m[F::kMins ? Columns::kGroups : 1];

    RL_ALWAYS_INLINE void fill(const uint8_t* block, size_t blocks) {
        for (size_t b = 0; b < blocks; ++b, block += F::kBytes) {
            Columns::fill_scales(block, w + b * F::kGroups, m + (F::kMins ? b * F::kGroups : 0));
            unroll<0, F::kBlock / F::kSection>([&](auto s) RL_ALWAYS_INLINE {
                uint8_t(*out)[64] = codes + (b * F::kBlock + s * F::kSection) / 4;
                F::template codes<s>(block, [&](auto k, auto j, __m512i v) RL_ALWAYS_INLINE {
                    if constexpr (kSignedTiles<F>) v = _mm512_sub_epi8(v, _mm512_set1_epi8(char(kBias)));
                    _mm512_store_si512(out[8 * k + j], v);
                });
            });
        }
    }
};

template <class F>
constexpr int kTileParts = 32 / F::kGroup;

// Dot products of 32 columns: (parts, activation rows, 16).
template <class F>
struct alignas(64) TileDots {
    int32_t of[kTileParts<F>][kTile][kPanelRows];
};

// Multiplies F::kGroup columns. A macro, for GCC wants the numbers of tiles as literals.
#define RL_MULTIPLY_TILE(sums, x_tile, w_tile, codes, q, x_bytes) \
    _tile_loadd(x_tile, q, x_bytes);                              \
    _tile_loadd(w_tile, codes, 64);                               \
    _tile_zero(sums);                                             \
    if constexpr (kSignedTiles<F>)                                \
        _tile_dpbssd(sums, x_tile, w_tile);                       \
    else                                                          \
        _tile_dpbsud(sums, x_tile, w_tile)

// Tiles are not renamed: sets 0 and 1 have different ones.
template <class F, int kSet>
RL_ALWAYS_INLINE inline void multiply_tile_group(const TileColumns<F>& w, size_t g, const Int8Block* x,
                                                 size_t x_bytes) {
    const uint8_t* codes = w.codes[8 * g];
    const int8_t* q = x[g].q;
    if constexpr (kSet == 0) {
        RL_MULTIPLY_TILE(0, 4, 6, codes, q, x_bytes);
    } else {
        RL_MULTIPLY_TILE(1, 5, 7, codes, q, x_bytes);
    }
    if constexpr (F::kGroup == 16 && kSet == 0) {
        RL_MULTIPLY_TILE(2, 4, 6, codes + 256, q + 16, x_bytes);
    } else if constexpr (F::kGroup == 16) {
        RL_MULTIPLY_TILE(3, 5, 7, codes + 256, q + 16, x_bytes);
    }
}
template <class F, int kSet>
RL_ALWAYS_INLINE inline void store_tile_group(TileDots<F>& out) {
    if constexpr (kSet == 0) {
        _tile_stored(0, out.of[0], 64);
        if constexpr (F::kGroup == 16) _tile_stored(2, out.of[1], 64);
    } else {
        _tile_stored(1, out.of[0], 64);
        if constexpr (F::kGroup == 16) _tile_stored(3, out.of[1], 64);
    }
}

// Bytes that are fetched while a tile is multiplied, so many lines with each 32 columns. They go to the
// second-level cache: the first has fewer places for what is on its way than the memory takes to answer.
struct TileFetch {
    const uint8_t* at;
    size_t lines;

    RL_ALWAYS_INLINE void fetch(size_t g) const {
        for (size_t i = 0; i < lines; ++i)
            _mm_prefetch(reinterpret_cast<const char*>(at + (g * lines + i) * 64), _MM_HINT_T1);
    }
};

// The sums of kQuads quads of a tile over the columns in `w`.
template <class F, int kQuads>
void multiply_int8_tile(const TileColumns<F>& w, size_t groups32, const Int8Block* x, size_t x_stride,
                        const RowTiles& tiles, const TileFetch& next, TileDots<F>* dots, float* sums,
                        bool accumulate) {
    constexpr int kRows = kQuads * kRowQuad, kLast = kQuads - 1, kParts = kTileParts<F>;
    const size_t x_bytes = x_stride * sizeof(Int8Block), last = tiles.quad_begin(kLast);
    const TileFetch fetch = next;
    __m512 total[kRows];
    unroll<0, kRows>([&](auto t) RL_ALWAYS_INLINE { total[t] = _mm512_setzero_ps(); });
    const auto finish = [&](size_t g, const TileDots<F>& from) RL_ALWAYS_INLINE {
        __m512 scale[kParts], minimum[kParts];
        unroll<0, kParts>([&](auto i) RL_ALWAYS_INLINE {
            scale[i] = w.w[g * kParts + size_t(i)];
            if constexpr (F::kMins) minimum[i] = w.m[g * kParts + size_t(i)];
        });
        unroll<0, kQuads>([&](auto quad) RL_ALWAYS_INLINE {
            const size_t first = quad == kLast ? last : size_t(quad * kRowQuad);
            const Int8Block* xq = x + g + first * x_stride;
            unroll<0, kRowQuad>([&](auto i) RL_ALWAYS_INLINE {
                struct Sum {
                    __m512i sum;
                    RL_ALWAYS_INLINE __m512 value() const { return _mm512_cvtepi32_ps(sum); }
                } part[kParts];
                unroll<0, kParts>([&](auto k) RL_ALWAYS_INLINE {
                    part[k].sum = _mm512_load_si512(from.of[k][first + size_t(i)]);
                });
                __m512& sum = total[quad * kRowQuad + i];
                sum = add_scaled<Avx512, F>(sum, part, scale, minimum, xq[size_t(i) * x_stride]);
            });
        });
    };
    // Sums are stored when the next product has begun, and read one later.
    multiply_tile_group<F, 0>(w, 0, x, x_bytes);
    for (size_t g = 0; g <= groups32; g += 2) {
        if (g + 1 < groups32) multiply_tile_group<F, 1>(w, g + 1, x, x_bytes);
        if (g < groups32) store_tile_group<F, 0>(dots[0]);
        fetch.fetch(g);
        if (g > 0) finish(g - 1, dots[1]);
        if (g == groups32) break;
        if (g + 2 < groups32) multiply_tile_group<F, 0>(w, g + 2, x, x_bytes);
        if (g + 1 < groups32) store_tile_group<F, 1>(dots[1]);
        fetch.fetch(g + 1);
        finish(g, dots[0]);
    }
    unroll<0, kRows>([&](auto t) RL_ALWAYS_INLINE {
        float* to = sums + t * int(kPanelRows);
        if (accumulate) total[t] = _mm512_add_ps(total[t], _mm512_load_ps(to));
        _mm512_store_ps(to, total[t]);
    });
}

// y (rows of y_stride) = (or +=) the sums of one panel.
RL_ALWAYS_INLINE inline void write_int8_sums(const PanelView& w, size_t p, const float* sums,
                                             const RowTiles& tiles, float* y, size_t y_stride,
                                             bool accumulate) {
    const unsigned rows = w.rows_in(p);
    float* out = y + p * kPanelRows;
    for (size_t t = 0; t < tiles.rows; ++t, out += y_stride) {
        __m512 sum = _mm512_load_ps(sums + tiles.slot(t) * kPanelRows);
        if (accumulate) sum = _mm512_add_ps(sum, Avx512::load_rows(out, rows));
        Avx512::store_rows(out, rows, sum);
    }
}

template <class F>
struct alignas(64) Int8TileScratch {
    TileColumns<F> columns;
    TileDots<F> dots[2];
    float sums[Avx512::kStreams][kMostTiles * kTile * kPanelRows];
};

template <class, class F>
struct AmxInt8Product {
    static constexpr uint32_t kId = F::kId;

    static void multiply(const PackedMatrix& matrix, uint64_t panel_begin, uint64_t panel_end,
                         const std::byte* prepared, size_t x_stride, size_t x_rows, float* y, size_t y_stride,
                         bool accumulate) {
        using Columns = Unpacked<Avx512, F>;
        constexpr size_t kStep = Columns::kBlocks;
        auto& scratch = *reinterpret_cast<Int8TileScratch<F>*>(kernel_scratch(sizeof(Int8TileScratch<F>)));
        __builtin_memset(scratch.dots, 0, sizeof scratch.dots);
        const PanelView w(matrix);
        const RowTiles tiles(x_rows);
        const auto* x = reinterpret_cast<const Int8Block*>(prepared);
        x_stride /= sizeof(Int8Block);
        load_int8_config<F>(tiles.each);
        const auto tile = tiles.quads() <= 2   ? multiply_int8_tile<F, 2>
                          : tiles.quads() == 3 ? multiply_int8_tile<F, 3>
                                               : multiply_int8_tile<F, 4>;
        const size_t streams = reads_side_by_side() ? Avx512::kStreams : 1;
        for (size_t p = panel_begin, count; p < panel_end; p += count) {
            count = smaller(streams, panel_end - p);
            const ptrdiff_t jump = w.jump(p, count, panel_end);
            for (size_t b = 0; b < w.blocks; b += kStep) {
                const size_t blocks = smaller(kStep, w.blocks - b), bytes = blocks * F::kBytes;
                const size_t groups32 = blocks * F::kBlock / 32;
                const ptrdiff_t ahead = ptrdiff_t(bytes) + (b + kStep >= w.blocks ? jump : 0);
                for (size_t i = 0; i < count; ++i) {
                    const uint8_t* at = w.panel(p + i) + b * F::kBytes;
                    scratch.columns.fill(at, blocks);
                    TileFetch next{at + ahead, (bytes / 64 + groups32 - 1) / groups32};
                    for (size_t t = 0; t < tiles.count; ++t, next.lines = 0)
                        tile(scratch.columns, groups32, x + tiles.begin(t) * x_stride + b * F::kBlock / 32,
                             x_stride, tiles, next, scratch.dots, scratch.sums[i] + t * kTile * kPanelRows,
                             b > 0);
                }
            }
            for (size_t i = 0; i < count; ++i)
                write_int8_sums(w, p + i, scratch.sums[i], tiles, y, y_stride, accumulate);
        }
        _tile_release();
    }
    static constexpr LinearKernel kernel = {Activations::int8_block32, int8_bytes, prepare_int8, multiply,
                                            !goes_alone<F>};
};

}  // namespace
}  // namespace redline::cpu
