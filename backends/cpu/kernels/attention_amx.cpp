// Attention for many queries on AMX tiles. Queries and keys are split into two bfloat16 numbers each, and
// three of the four products are summed, so that scores keep 16 bits of their operands: their errors would
// otherwise grow with the scores and enter an exponent. Weights of keys and values are rounded to bfloat16,
// which moves the result by a share of itself. All formats of a cache are converted to floats first.
#include "codes_avx512.h"

#include "attention_amx.h"
#include "attention_flash.h"
#include "kv_store.h"
#include "levels.h"

namespace redline::cpu {
namespace {

constexpr size_t kTileRows = 16;
constexpr size_t kTileCols = 32;  // of bfloat16
constexpr size_t kTileValues = kTileRows * kTileCols;
static_assert(kTileQueries == 2 * kTileRows && kTileKeys % kTile == 0);

struct TileConfig {
    uint8_t palette = 1;
    uint8_t start_row = 0;
    uint8_t reserved[14] = {};
    uint16_t bytes_per_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64);

// Two rows of 16 floats as bfloat16, element by element in turn: the second operand of a tile product.
inline __m512i in_turn(__m512 a, __m512 b) {
    alignas(64) static constexpr uint16_t kInTurn[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                         21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                         11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    const __m512bh both = _mm512_cvtne2ps_pbh(b, a);
    __m512i words;
    __builtin_memcpy(&words, &both, sizeof words);
    return _mm512_permutexvar_epi16(_mm512_load_si512(kInTurn), words);
}

// What is left of rows a and b after their bfloat16 numbers `words` as in_turn() gives them, in the same
// form. Of halves it is exact.
inline __m512i rest_in_turn(__m512 a, __m512 b, __m512i words) {
    const __m512i upper = _mm512_and_si512(words, _mm512_set1_epi32(int(0xFFFF0000)));
    return in_turn(_mm512_sub_ps(a, _mm512_castsi512_ps(_mm512_slli_epi32(words, 16))),
                   _mm512_sub_ps(b, _mm512_castsi512_ps(upper)));
}

// 16 floats as bfloat16; returns what is left of them.
inline __m512 store_bf16(__m512 x, uint16_t* out) {
    const __m256bh halves = _mm512_cvtneps_pbh(x);
    __m256i words;
    __builtin_memcpy(&words, &halves, sizeof words);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), words);
    return _mm512_sub_ps(x, _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(words), 16)));
}

class TileBlock : public Block {
public:
    TileBlock(const Attend& work, uint32_t first_row, uint32_t rows)
        : Block(work, first_row, rows), memory_(work.scratch, queries_, dims_) {}
    void run();

private:
    // Tiles of 32 queries (first operand) or 16 keys (second), by steps of 32 dimensions and then parts.
    size_t part_tiles() const { return dims_ / kTileCols * 2; }

    void load_queries();
    void load_keys(const Tile& tile);
    void load_values(const Tile& tile);
    void load_value_pairs(const Tile& tile, size_t first, size_t last, size_t dim);
    void add_chunk(const Tile& tile, size_t begin);
    void score(const uint16_t* q, size_t step) const;
    void weigh(const Tile& tile, size_t begin, size_t count, Span seen, size_t first_step, size_t last_step);
    void sum(float* sums, size_t first_step, size_t last_step) const;
    void add_loud(const Tile& tile, size_t begin, size_t count);

    TileMemory memory_;
    // Keys of the tile that have a value which is not finite. In a product it would reach queries that give
    // it no weight, so there it is 0, and it is added for those that see it.
    bool loud_[kTileKeys];
    bool any_loud_ = false;
};

inline void TileBlock::load_queries() {
    for (size_t query = 0; query < round_up(queries_, kTileQueries); ++query) {
        const size_t chunk = query / kTileQueries, row = query % kTileQueries;
        uint16_t* out = memory_.queries + chunk * part_tiles() * 2 * kTileValues + row * kTileCols;
        const float* q = nullptr;
        if (query < queries_) q = work_.q + row_of(query) * work_.q_stride + query % work_.group * dims_;
        for (size_t i = 0; i < dims_; i += kTileCols, out += 4 * kTileValues)
            for (size_t half = 0; half < kTileCols; half += 16) {
                const __m512 x = q ? _mm512_mul_ps(_mm512_loadu_ps(q + i + half), _mm512_set1_ps(work_.scale))
                                   : _mm512_setzero_ps();
                store_bf16(store_bf16(x, out + half), out + 2 * kTileValues + half);
            }
    }
    for (size_t i = 0; i < queries_ * width_; ++i) scratch_.sums[i] = 0.0f;
    for (size_t i = 0; i < queries_; ++i) scratch_.states[i] = Softmax{};
}

inline void TileBlock::load_keys(const Tile& tile) {
    for (size_t key = 0; key < tile.keys; key += kPanelKeys) {
        if (tile.seen.lo >= key + kPanelKeys || tile.seen.hi <= key) continue;
        const size_t blocks = smaller(kPanelKeys, round_up(tile.keys - key, kPiece)) / kPiece;
        convert_keys(cache_, (tile.row + key) / kKeyBlock, blocks, scratch_.panel);
        uint16_t* out = memory_.keys + key / kPiece * part_tiles() * kTileValues;
        const float* x = scratch_.panel;
        for (size_t i = 0; i < blocks * dims_; i += kTileCols, out += 2 * kTileValues)
            for (size_t pair = 0; pair < kTileRows; ++pair, x += 2 * kPiece) {
                const __m512 a = _mm512_loadu_ps(x), b = _mm512_loadu_ps(x + kPiece);
                const __m512i words = in_turn(a, b);
                _mm512_store_si512(out + pair * kTileCols, words);
                _mm512_store_si512(out + kTileValues + pair * kTileCols, rest_in_turn(a, b, words));
            }
    }
}

// 32 dimensions of the values of keys [first, last), in whole pairs; 0 for keys that nobody sees.
inline void TileBlock::load_value_pairs(const Tile& tile, size_t first, size_t last, size_t dim) {
    const size_t lo = tile.seen.lo > first ? tile.seen.lo : first, hi = smaller(tile.seen.hi, last);
    if (lo < hi) convert_values(cache_, tile.row + lo, hi - lo, dim, scratch_.panel);
    const auto row = [&](size_t key, size_t piece) {
        if (key < lo || key >= hi) return _mm512_setzero_ps();
        const __m512 v = _mm512_loadu_ps(scratch_.panel + piece * kTile * kPiece + (key - lo) * kPiece);
        constexpr int kNotFinite = 0x99;  // quiet and signalling NaN, both infinities
        const __mmask16 bad = _mm512_fpclass_ps_mask(v, kNotFinite);
        if (bad == 0) return v;
        loud_[key] = any_loud_ = true;
        return _mm512_maskz_mov_ps(__mmask16(~bad), v);
    };
    for (size_t key = first; key < last; key += 2) {
        uint16_t* out = memory_.values + (key / kTileCols * (dims_ / kPiece) + dim / kPiece) * kTileValues +
                        key % kTileCols / 2 * kTileCols;
        for (size_t piece = 0; piece < 2; ++piece)
            _mm512_store_si512(out + piece * kTileValues, in_turn(row(key, piece), row(key + 1, piece)));
    }
}

inline void TileBlock::load_values(const Tile& tile) {
    any_loud_ = false;
    for (bool& loud : loud_) loud = false;
    for (size_t first = tile.seen.lo / kTileCols * kTileCols; first < tile.seen.hi; first += kTile)
        for (size_t dim = 0; dim < dims_; dim += kPanelDims)
            load_value_pairs(tile, first, smaller(first + kTile, round_up(tile.seen.hi, kTileCols)), dim);
}

// Scores of 32 queries and 32 keys.
inline void TileBlock::score(const uint16_t* q, size_t step) const {
    const uint16_t* low_keys = memory_.keys + step * 2 * part_tiles() * kTileValues;
    const uint16_t* high_keys = low_keys + part_tiles() * kTileValues;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    const auto multiply = [] {
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    };
    const auto load_queries = [](const uint16_t* from) {
        _tile_loadd(4, from, 64);
        _tile_loadd(5, from + kTileValues, 64);
    };
    const auto load_keys = [](const uint16_t* low, const uint16_t* high) {
        _tile_loadd(6, low, 64);
        _tile_loadd(7, high, 64);
    };
    for (size_t i = 0; i < dims_; i += kTileCols) {
        load_queries(q + 2 * kTileValues);
        load_keys(low_keys, high_keys);
        multiply();
        load_queries(q);
        multiply();
        load_keys(low_keys + kTileValues, high_keys + kTileValues);
        multiply();
        q += 4 * kTileValues;
        low_keys += 2 * kTileValues;
        high_keys += 2 * kTileValues;
    }
    float* to = memory_.scores + step * kTileCols;
    constexpr size_t kStride = kTileKeys * sizeof(float);
    _tile_stored(0, to, kStride);
    _tile_stored(1, to + kTileRows, kStride);
    _tile_stored(2, to + kTileRows * kTileKeys, kStride);
    _tile_stored(3, to + kTileRows * kTileKeys + kTileRows, kStride);
}

// Scores to weights, as bfloat16, and what was summed before to the new maxima.
inline void TileBlock::weigh(const Tile& tile, size_t begin, size_t count, Span seen, size_t first_step,
                             size_t last_step) {
    const size_t first = seen.lo / kPiece * kPiece, last = round_up(seen.hi, kPiece);
    for (size_t m = 0; m < count; ++m) {
        float* scores = memory_.scores + m * kTileKeys;
        const Span own = seen_by(tile, begin + m);
        const float rescale =
            softmax_row(scores, seen.lo, seen.hi, own.lo, own.hi, work_.softcap, scratch_.states[begin + m]);
        uint16_t* weights = memory_.weights + m * kTileKeys;
        for (size_t i = first_step * kTileCols; i < last_step * kTileCols; i += kPiece)
            store_bf16(i < first || i >= last ? _mm512_setzero_ps() : _mm512_loadu_ps(scores + i),
                       weights + i);
        if (rescale == 1.0f) continue;
        float* sums = scratch_.sums + (begin + m) * width_;
        for (size_t i = 0; i < dims_; i += kLanes) (Vec::load(sums + i) * Vec::set1(rescale)).store(sums + i);
    }
}

// Adds weights times values for 32 queries.
inline void TileBlock::sum(float* sums, size_t first_step, size_t last_step) const {
    const size_t stride = width_ * sizeof(float), value_step = dims_ / kPiece * kTileValues;
    constexpr size_t kStride = kTileKeys * sizeof(uint16_t);
    for (size_t dim = 0; dim < dims_; dim += kTileCols, sums += kTileCols) {
        _tile_loadd(0, sums, stride);
        _tile_loadd(1, sums + kTileRows, stride);
        _tile_loadd(2, sums + kTileRows * width_, stride);
        _tile_loadd(3, sums + kTileRows * width_ + kTileRows, stride);
        for (size_t step = first_step; step < last_step; ++step) {
            const uint16_t* weights = memory_.weights + step * kTileCols;
            const uint16_t* values = memory_.values + step * value_step + dim / kPiece * kTileValues;
            _tile_loadd(4, weights, kStride);
            _tile_loadd(6, values, 64);
            _tile_dpbf16ps(0, 4, 6);
            _tile_loadd(7, values + kTileValues, 64);
            _tile_dpbf16ps(1, 4, 7);
            _tile_loadd(5, weights + kTileRows * kTileKeys, kStride);
            _tile_dpbf16ps(2, 5, 6);
            _tile_dpbf16ps(3, 5, 7);
        }
        _tile_stored(0, sums, stride);
        _tile_stored(1, sums + kTileRows, stride);
        _tile_stored(2, sums + kTileRows * width_, stride);
        _tile_stored(3, sums + kTileRows * width_ + kTileRows, stride);
    }
}

inline void TileBlock::add_loud(const Tile& tile, size_t begin, size_t count) {
    for (size_t key = tile.seen.lo; key < tile.seen.hi; ++key)
        for (size_t dim = 0; loud_[key] && dim < dims_; dim += kPanelDims) {
            convert_values(cache_, tile.row + key, 1, dim, scratch_.panel);
            for (size_t m = 0; m < count; ++m) {
                const Span own = seen_by(tile, begin + m);
                if (key < own.lo || key >= own.hi) continue;
                float* sums = scratch_.sums + (begin + m) * width_ + dim;
                for (size_t j = 0; j < kPanelDims; ++j) {
                    const float v = scratch_.panel[column_offset(j / kLanes, kTile * kPiece) + j % kLanes];
                    if (!(v - v == 0.0f)) sums[j] += memory_.scores[m * kTileKeys + key] * v;
                }
            }
        }
}

// 32 queries, or the last ones: what the tiles give for missing ones is not used.
inline void TileBlock::add_chunk(const Tile& tile, size_t begin) {
    const size_t count = smaller(kTileQueries, queries_ - begin);
    const Span seen{seen_by(tile, begin).lo, seen_by(tile, begin + count - 1).hi};
    if (seen.lo >= seen.hi) return;
    const size_t first_step = seen.lo / kTileCols, last_step = (seen.hi + kTileCols - 1) / kTileCols;
    const uint16_t* q = memory_.queries + begin / kTileQueries * part_tiles() * 2 * kTileValues;
    for (size_t step = first_step; step < last_step; ++step) score(q, step);
    weigh(tile, begin, count, seen, first_step, last_step);
    sum(scratch_.sums + begin * width_, first_step, last_step);
    if (any_loud_) add_loud(tile, begin, count);
}

inline void TileBlock::run() {
    const TileConfig config;
    _tile_loadconfig(&config);
    load_queries();
    for_each_tile(kTileKeys, kKeyBlock, [this](const Tile& tile) {
        load_keys(tile);
        load_values(tile);
        for (size_t begin = 0; begin < queries_; begin += kTileQueries) add_chunk(tile, begin);
    });
    _tile_release();
    for (size_t i = 0; i < queries_; ++i) finish(i);
}

inline Activations tile_activations(size_t queries, uint32_t head_dim) {
    return tiles_suit(queries, head_dim) ? Activations::bf16 : Activations::f32;
}

inline void attend_by_tiles(const Attend& work) {
    if (work.rows == 0 || work.group == 0) return;
    const uint32_t step = block_rows(work.rows, work.group, work.kv.head_dim);
    for (uint32_t row = 0; row < work.rows; row += step) {
        const uint32_t rows = work.rows - row < step ? work.rows - row : step;
        if (!work.few && work.kv.rank == 0 && tiles_suit(size_t{rows} * work.group, work.kv.head_dim))
            TileBlock(work, row, rows).run();
        else
            Block(work, row, rows).run();
    }
}

}  // namespace

constexpr AttentionKernels kAttentionAmx{kv_store, attend_by_tiles, combine, merge, tile_activations};

}  // namespace redline::cpu
