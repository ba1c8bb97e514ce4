// Products of many tokens with a matrix, on matrix units: a block computes a tile of results over tiles of 64
// columns, which lie as halfs in shared memory. Sums in f32. The tile that comes next is read while the
// present one is multiplied.
#pragma once

#include "kernels/matrix.h"
#include "kernels/reduce.h"
#include "kernels/unit.h"

namespace redline::hip {

constexpr uint32_t kDepth = 64;  // columns of a tile: two units
// Halfs of a row in shared memory, padded against bank conflicts where eights are not swizzled.
constexpr uint32_t kDepthStride = kSwizzles ? kDepth : kDepth + 8;
constexpr uint32_t kTileWaves = kTileThreads / kWave;

// Rows of a tile of one expert's products, as DeviceReport::expert_rows() has it. AMD's matrix units are so
// fast that with 64 decoding takes longer than multiplying.
#if defined(__HIP__)
constexpr uint32_t kExpertRows = 128, kExpertBlocks = 2;
#else
constexpr uint32_t kExpertRows = 64, kExpertBlocks = 3;
#endif
// Places of an expert that narrow tiles have room for, whose rows are as many everywhere.
constexpr uint32_t kNarrowPlaces = 32, kNarrowRows = 128;

#ifdef RL_WAVE_GROUPS
constexpr bool kGroups = true;
static_assert(kBricks == 8 * kDepthStride * 2, "bricks take no more than padded rows");
#else
constexpr bool kGroups = false;
#endif
// Where eight halfs of a row of a tile are in shared memory, in eights.
RL_DEVICE uint32_t eight_at(uint32_t row, uint32_t eight) {
    constexpr uint32_t kEights = kDepthStride / 8;
    if constexpr (kSwizzles) return swizzled_eight(row, eight);
    return kGroups ? row / 8 * (kDepth / 8) * kEights + eight * kEights + row % 8 : row * kEights + eight;
}

// Of that row, by up to three on from a multiple of four.
RL_DEVICE uint32_t eight_after(uint32_t at, uint32_t more) {
    return kSwizzles ? at ^ more : at + eight_at(0, more);
}

// Codes as they are multiplied in int8. No byte of the sum carries: codes with a bias are below 128.
template <typename F>
RL_DEVICE uint32_t unbiased_bytes(uint32_t codes) {
    if constexpr (F::kBias == 0) return codes;
    return (codes + (128u - F::kBias) * 0x01010101u) ^ 0x80808080u;
}

// The codes of a unit, and two of them beside each other as halfs. A code below the exponent of 1024 is that
// much above it, and a nibble in the upper half of a byte below the exponent of 64 likewise, exactly.
template <typename F>
struct UnitCodes {
    uint32_t words[8];
    RL_DEVICE void read(const Matrix& w, size_t unit) { F::codes(w, unit, words); }
    // Those of elements 4k and 4k + 2, or of the two behind them.
    RL_DEVICE uint32_t pair(uint32_t k, bool odd) const {
        constexpr uint32_t kBase = 0x64006400u;
        const uint32_t word = F::kSigned ? words[k] ^ 0x80808080u : words[k];
        const float above = 1024.0f + (F::kSigned ? 128.0f : float(F::kBias));
        const uint32_t exponents = constant_in_lanes(kBase);
        return pair_minus(
            odd ? pick_bytes(0x05030501u, word, exponents) : and_or(word, 0x00FF00FFu, exponents),
            half_pair(above, above));
    }
    // Codes 4k .. 4k + 3 in int8, without the bias.
    RL_DEVICE uint32_t bytes(uint32_t k) const { return unbiased_bytes<F>(words[k]); }
};
template <OfNibbles F>
struct UnitCodes<F> {
    Words4 words;
    RL_DEVICE void read(const Matrix& w, size_t unit) { words = F::nibbles(w, unit); }
    RL_DEVICE uint32_t pair(uint32_t k, bool odd) const {
        const uint32_t word = odd ? words.d[k % 4] >> 8 : words.d[k % 4];
        const bool upper = k >= 4;
        const float above = (upper ? 64.0f : 1024.0f) + float(F::kBias);
        return pair_minus(and_or(word, upper ? 0x00F000F0u : 0x000F000Fu,
                                 constant_in_lanes(upper ? 0x54005400u : 0x64006400u)),
                          half_pair(above, above));
    }
    RL_DEVICE uint32_t bytes(uint32_t k) const {
        return unbiased_bytes<F>((k >= 4 ? words.d[k % 4] >> 4 : words.d[k]) & 0x0F0F0F0Fu);
    }
};

// Scales as pairs of the same half.
struct ScalePairs {
    uint32_t scale[2], offset[2];
};
RL_DEVICE ScalePairs pairs_of(const UnitScales& s) {
    return {{half_pair(s.scale[0], s.scale[0]), half_pair(s.scale[1], s.scale[1])},
            {half_pair(s.offset[0], s.offset[0]), half_pair(s.offset[1], s.offset[1])}};
}
// pairs_of(k_scales(header, j)), bit for bit: a half times a code of six bits is exact in f32, so that only
// the product's one rounding is left.
RL_DEVICE ScalePairs k_scale_pairs(const Words4& header, uint32_t j) {
    const KCodes of = k_codes(header, j);
    const uint32_t codes = pair_minus(of.scale | of.minimum << 16 | 0x64006400u, half_pair(1024.0f, 1024.0f)),
                   both = pair_times(codes, header.d[0] ^ 0x80000000u),
                   scale = pick_bytes(0x01000100u, both, both), offset = pick_bytes(0x03020302u, both, both);
    return {{scale, scale}, {offset, offset}};
}

// Elements 4k, 4k + 2, 4k + 1, 4k + 3 of a unit: so two bytes of a word become two halfs by one mask.
template <typename F>
RL_DEVICE Words2 unit_halfs(const UnitCodes<F>& codes, const ScalePairs& s, uint32_t k) {
    const uint32_t even = codes.pair(k, false), odd = codes.pair(k, true), scale = s.scale[k / 4];
    if constexpr (!F::kOffset) return {{pair_times(even, scale), pair_times(odd, scale)}};
    return {{pair_fused(even, scale, s.offset[k / 4]), pair_fused(odd, scale, s.offset[k / 4])}};
}

// One unit of a weight between being read and being decoded. In words: arrays of halfs would go to memory.
template <typename F>
struct UnitAhead {
    UnitCodes<F> codes;
    UnitScales s;
    RL_DEVICE void read(const Matrix& w, size_t unit) {
        codes.read(w, unit);
        s = F::scales(w, unit);
    }
    RL_DEVICE void clear() { s = {}; }  // makes it zeros
    RL_DEVICE Words2 halfs(uint32_t k) const { return unit_halfs<F>(codes, pairs_of(s), k); }
};
// Likewise eight elements of a format of 16-bit floats.
template <typename F>
struct EightAhead {
    static_assert(sizeof(typename F::Four) == 8);
    Words4 raw;
    RL_DEVICE void read(const uint8_t* data, size_t eight) { raw = load<Words4>(data, eight); }
    RL_DEVICE void clear() { raw = {}; }
    RL_DEVICE float value(uint32_t i) const { return F::value(uint16_t(raw.d[i / 2] >> (i % 2 * 16))); }
    // Each four in the order that UnitAhead has.
    RL_DEVICE Words4 halfs() const {
        Words4 pairs;
        RL_UNROLL
        for (uint32_t k = 0; k < 4; k += 2) {
            if constexpr (F::kHalfs) {
                pairs.d[k] = pick_bytes(0x05040100u, raw.d[k], raw.d[k + 1]);
                pairs.d[k + 1] = pick_bytes(0x07060302u, raw.d[k], raw.d[k + 1]);
            } else {
                pairs.d[k] = half_pair(value(2 * k), value(2 * k + 2));
                pairs.d[k + 1] = half_pair(value(2 * k + 1), value(2 * k + 3));
            }
        }
        return pairs;
    }
};

// kRows rows of the matrix by kTokens tokens. kGated: every second kPairRows rows are of `up`, and a wave
// holds both of a result.
template <uint32_t kRows, uint32_t kTokens, bool kGated>
struct TileShape {
    static constexpr uint32_t kUnits = kRows * 2, kUnitsEach = (kUnits + kTileThreads - 1) / kTileThreads;
    static constexpr uint32_t kEights = kRows * (kDepth / 8),  // of weights
        kEightsEach = (kEights + kTileThreads - 1) / kTileThreads;
    static constexpr uint32_t kChunks = kTokens * (kDepth / 8),  // of eight activations
        kChunksEach = (kChunks + kTileThreads - 1) / kTileThreads;
    // Four waves multiply 64 rows of a first factor together. Where there are fewer tokens, these are rows of
    // the matrix, and sums have theirs there.
    static constexpr bool kTurned = kGroups && kTokens < 64;
    // Waves over tokens, and over rows; then the matrices of sums that each has. Where tokens' rows are read
    // as they are used, each is to serve many rows of the matrix. Four waves with few tokens read fewer
    // factors when each has all of them.
    static constexpr uint32_t kWavesDown = kTurned             ? 1
                                           : kGroups           ? kTokens / 16
                                           : kReadsFirstFactor ? (kTokens < 64 ? 2 : 4)
                                           : kTileWaves > 4    ? 2
                                           : kTileWaves > 1    ? (kTokens < 64 ? 1 : 2)
                                                               : 1,
                              kWavesAcross = kTileWaves / kWavesDown;
    static constexpr uint32_t kAcross = kRows / (16 * kWavesAcross), kDown = kTokens / (16 * kWavesDown);
    static constexpr uint32_t kRowEights = kRows * kDepthStride / 8,
                              kTokenEights = kTokens * kDepthStride / 8;
    static constexpr uint32_t kOwnRows = kGated ? kRows / 2 : kRows;  // of y
    static constexpr uint32_t kPairRows = kTurned ? 8 : 16;           // so many of each matrix in turn
    static_assert(!kGated || kTurned || kAcross % 2 == 0);
};

// What a block multiplies. Entries are tokens, or with experts the places that chose one.
struct TilePlace {
    Matrix w;
    Matrix up;
    uint32_t rows;         // of the matrix
    uint32_t first_row;    // of this block
    uint32_t first_entry;  // likewise
    uint32_t entries;      // up to the last of this matrix
    size_t matrix_row;     // where the matrix begins among all experts'
};

// Where row r of a block's tile is in its matrix, and whether it is of `up`.
struct TileRow {
    size_t row;
    bool of_up;
};
template <typename S, bool kGated>
RL_DEVICE TileRow tile_row(const TilePlace& at, uint32_t r) {
    constexpr uint32_t kPair = S::kPairRows;
    const uint32_t within = kGated ? r / (2 * kPair) * kPair + r % kPair : r;
    return {at.matrix_row + lesser(at.first_row + within, at.rows - 1), kGated && r / kPair % 2 == 1};
}

// A thread's part of a tile of weights on its way: units, or of floats eights, so that neighbouring threads
// read neighbouring ones. Read without branches; past the last column it is the last, which store() makes
// zeros.
template <typename F, typename S, bool kFloats = F::kFloats>
struct WeightsAhead {
    UnitAhead<F> units[S::kUnitsEach];

    template <bool kGated>
    RL_DEVICE void read(const TilePlace& at, uint32_t cols, uint32_t column) {
        RL_UNROLL
        for (uint32_t n = 0; n < S::kUnitsEach; ++n) {
            const uint32_t i = lesser(n * kTileThreads + thread_index(), S::kUnits - 1);
            const uint32_t unit = lesser(column / 32 + i % 2, cols / 32 - 1);
            const auto [row, of_up] = tile_row<S, kGated>(at, i / 2);
            units[n].read({of_up ? at.up.data : at.w.data, of_up ? at.up.units : at.w.units},
                          row * (cols / 32) + unit);
        }
    }
    RL_DEVICE void store(uint32_t cols, uint32_t column, Words4* w_tile) {
        RL_UNROLL
        for (uint32_t n = 0; n < S::kUnitsEach; ++n) {
            const uint32_t i = n * kTileThreads + thread_index();
            if (S::kUnits % kTileThreads != 0 && i >= S::kUnits) break;
            const uint32_t first = eight_at(i / 2, i % 2 * 4);
            if (column + i % 2 * 32 >= cols) units[n].clear();
            RL_UNROLL
            for (uint32_t k = 0; k < 4; ++k) {
                const Words2 low = units[n].halfs(2 * k), high = units[n].halfs(2 * k + 1);
                w_tile[eight_after(first, k)] = Words4{{low.d[0], low.d[1], high.d[0], high.d[1]}};
            }
        }
    }
};
template <typename F, typename S>
struct WeightsAhead<F, S, true> {
    EightAhead<F> eights[S::kEightsEach];

    template <bool kGated>
    RL_DEVICE void read(const TilePlace& at, uint32_t cols, uint32_t column) {
        // A choice between members of `at` would keep it in memory on AMD.
        const uint64_t w_at = uint64_t(at.w.data), up_at = uint64_t(at.up.data);
        RL_UNROLL
        for (uint32_t n = 0; n < S::kEightsEach; ++n) {
            const uint32_t i = lesser(n * kTileThreads + thread_index(), S::kEights - 1);
            const uint32_t eight = lesser(column / 8 + i % (kDepth / 8), cols / 8 - 1);
            const auto [row, of_up] = tile_row<S, kGated>(at, i / (kDepth / 8));
            const uint64_t data = kGated ? w_at ^ ((w_at ^ up_at) & (of_up ? ~uint64_t(0) : 0)) : w_at;
            eights[n].read(reinterpret_cast<const uint8_t*>(data), row * (cols / 8) + eight);
        }
    }
    RL_DEVICE void store(uint32_t cols, uint32_t column, Words4* w_tile) {
        RL_UNROLL
        for (uint32_t n = 0; n < S::kEightsEach; ++n) {
            const uint32_t i = n * kTileThreads + thread_index(), eight = i % (kDepth / 8);
            if (S::kEights % kTileThreads != 0 && i >= S::kEights) break;
            if (column + eight * 8 >= cols) eights[n].clear();
            w_tile[eight_at(i / (kDepth / 8), eight)] = eights[n].halfs();
        }
    }
};

template <typename F, typename S>
struct TileAhead {
    WeightsAhead<F, S> w;
    Words4 x[S::kChunksEach];
};

// Where the rows of this thread's activations begin, in eights.
template <typename S>
struct RowsAhead {
    size_t begin[S::kChunksEach];
};
template <typename S, typename Args, typename RowOf>
RL_DEVICE RowsAhead<S> rows_ahead(const Args& a, const TilePlace& at, RowOf x_row) {
    RowsAhead<S> rows;
    RL_UNROLL
    for (uint32_t n = 0; n < S::kChunksEach; ++n) {
        const uint32_t i = lesser(n * kTileThreads + thread_index(), S::kChunks - 1);
        rows.begin[n] = x_row(lesser(at.first_entry + i / (kDepth / 8), at.entries - 1)) * (a.cols / 8);
    }
    return rows;
}

template <typename F, typename S, bool kGated, typename Args>
RL_DEVICE void read_tile(const Args& a, const TilePlace& at, uint32_t column, const RowsAhead<S>& x_rows,
                         TileAhead<F, S>& ahead) {
    ahead.w.template read<kGated>(at, a.cols, column);
    RL_UNROLL
    for (uint32_t n = 0; n < S::kChunksEach; ++n) {
        const uint32_t i = lesser(n * kTileThreads + thread_index(), S::kChunks - 1);
        const uint32_t chunk = lesser(column / 8 + i % (kDepth / 8), a.cols / 8 - 1);
        ahead.x[n] = load<Words4>(a.halves, x_rows.begin[n] + chunk);
    }
}

template <typename F, typename S>
RL_DEVICE void store_tile(uint32_t cols, uint32_t column, TileAhead<F, S>& ahead, Words4* w_tile,
                          Words4* x_tile) {
    ahead.w.store(cols, column, w_tile);
    RL_UNROLL
    for (uint32_t n = 0; n < S::kChunksEach; ++n) {
        const uint32_t i = n * kTileThreads + thread_index(), chunk = i % (kDepth / 8);
        if (S::kChunks % kTileThreads != 0 && i >= S::kChunks) break;
        x_tile[eight_at(i / (kDepth / 8), chunk)] = ahead.x[n];
    }
}

#ifdef RL_WAVE_GROUPS
// Gives a tile's products to the matrix units and goes on.
template <typename S>
RL_DEVICE void start_tile(const Words4* w_tile, const Words4* x_tile, uint32_t across, uint32_t down,
                          MatrixSums (&sums)[S::kDown][S::kAcross]) {
    static_assert(S::kTurned ? S::kAcross == 1 && S::kWavesAcross % 4 == 0
                             : S::kDown == 1 && S::kWavesDown % 4 == 0);
    const uint64_t x = group_factor(x_tile + eight_at(down / 4 * 64, 0)),
                   w = group_factor(w_tile +
                                    eight_at(S::kTurned ? across / 4 * 64 : across * S::kAcross * 16, 0));
    begin_products();
    RL_UNROLL
    for (uint32_t k = 0; k < kDepth / 16; ++k)
        if constexpr (S::kTurned)
            multiply_add_group<S::kDown>(w + k * kNextFactor, x + k * kNextFactor, &sums[0][0]);
        else
            multiply_add_group<S::kAcross>(x + k * kNextFactor, w + k * kNextFactor, sums[0]);
    end_products();
}
#else
// kTight: what is loaded ahead fills the registers already.
template <typename S, bool kTight>
RL_DEVICE void multiply_tile(const Words4* w_words, const Words4* x_words, uint32_t across, uint32_t down,
                             MatrixSums (&sums)[S::kDown][S::kAcross]) {
    const auto *w_tile = reinterpret_cast<const uint16_t*>(w_words),
               *x_tile = reinterpret_cast<const uint16_t*>(x_words);
    const auto load = [](const uint16_t* tile, uint32_t number, uint32_t k) {
        const uint16_t* rows = tile + number * 16 * kDepthStride;
        if constexpr (kSwizzles) return load_swizzled(rows, k / 8);
        return load_tile(rows + k, kDepthStride);
    };
    RL_UNROLL
    for (uint32_t k = 0; k < kDepth; k += 16) {
        MatrixTile w[S::kAcross];
        RL_UNROLL
        for (uint32_t i = 0; i < S::kAcross; ++i) w[i] = load(w_tile, across * S::kAcross + i, k);
        RL_UNROLL
        for (uint32_t j = 0; j < S::kDown; ++j) {
            const MatrixTile x = load(x_tile, down * S::kDown + j, k);
            multiply_add_all(x, w, sums[j]);
        }
        if constexpr (kTight) keep_order();
    }
}
#endif

// The same of sums whose rows are rows of the matrix: of 16, the last eight may be of `up`.
template <typename S, bool kGated, typename Put>
RL_DEVICE void each_turned_result(const TilePlace& at, uint32_t across,
                                  const MatrixSums (&sums)[S::kDown][S::kAcross], Put put) {
    RL_UNROLL
    for (uint32_t j = 0; j < S::kDown; ++j) RL_UNROLL
    for (uint32_t n = 0; n < kSumsPerLane; ++n) {
        if (kGated && n % 4 >= 2) continue;
        const uint32_t entry = at.first_entry + j * 16 + sum_column(n);
        const uint32_t row = at.first_row + across * (kGated ? 8 : 16) + sum_row(n);
        put(entry, row, sums[j][0].d[n], sums[j][0].d[kGated ? n + 2 : n]);
    }
}

// Hands put(entry, row, sum, sum of up) what this lane holds.
template <typename S, bool kGated, typename Put>
RL_DEVICE void each_result(const TilePlace& at, uint32_t across, uint32_t down,
                           const MatrixSums (&sums)[S::kDown][S::kAcross], Put put) {
    if constexpr (S::kTurned) return each_turned_result<S, kGated>(at, across, sums, put);
    constexpr uint32_t kStep = kGated ? 2 : 1;
    RL_UNROLL
    for (uint32_t j = 0; j < S::kDown; ++j) RL_UNROLL
    for (uint32_t n = 0; n < kSumsPerLane; ++n) {
        const uint32_t entry = at.first_entry + (down * S::kDown + j) * 16 + sum_row(n);
        RL_UNROLL
        for (uint32_t i = 0; i < S::kAcross; i += kStep) {
            const uint32_t row = at.first_row + (across * S::kAcross + i) / kStep * 16 + sum_column(n);
            put(entry, row, sums[j][i].d[n], sums[j][i + kStep - 1].d[n]);
        }
    }
}

// Columns [from, to) of a tile, whole depths but for those that end with the matrix.
struct TileColumns {
    uint32_t from, to;
};

// Shared memory for a tile of rows and one of tokens; wave groups have a pool for them. On CDNA two blocks of
// 128 x 128 fill a compute unit's 64 KiB to the last byte: add_shares() has its flag where the tiles were.
template <typename S>
struct TileRoom {
#ifdef RL_WAVE_GROUPS
    uint32_t last;
    RL_DEVICE uint32_t& flag() {
        return last;
    }
#else
    Words4 w[S::kRowEights], x[S::kTokenEights];
    RL_DEVICE uint32_t& flag() {
        return w[0].d[0];
    }
#endif
};

// False for waves all of whose rows of x are behind an expert's last, which have no products. Tiles of a
// step's rows are full, but for the last ones; four waves are on different units, which then wait for the
// others.
template <typename S, typename Args>
RL_DEVICE bool has_products(const TilePlace& at, uint32_t down) {
    if constexpr (__is_same(Args, args::TileArgs) || kTileWaves <= 4) return true;
    return same_in_lanes(at.first_entry + down * S::kDown * 16) < at.entries;
}

// The sums of a block's tile over these columns. With groups of waves a tile is multiplied while the next is
// decoded, and a group whose rows of x are all behind the last has no products.
template <typename F, typename S, bool kGated, typename Args, typename RowOf>
RL_DEVICE void sum_tile(const Args& a, const TilePlace& at, TileColumns columns, RowOf x_row, uint32_t across,
                        uint32_t down, TileRoom<S>& room, MatrixSums (&sums)[S::kDown][S::kAcross]) {
    TileAhead<F, S> ahead;
    const RowsAhead<S> x_rows = rows_ahead<S>(a, at, x_row);
    uint32_t column = columns.from;
    read_tile<F, S, kGated>(a, at, column, x_rows, ahead);
#ifdef RL_WAVE_GROUPS
    RL_SHARED_POOL(pool);
    const bool multiplies = at.first_entry + down / 4 * 64 < at.entries;
    uint32_t turn = 0;
    do {
        Words4 *w_tile = pool + turn * (S::kRowEights + S::kTokenEights), *x_tile = w_tile + S::kRowEights;
        store_tile<F, S>(a.cols, column, ahead, w_tile, x_tile);
        show_factors();
        wait_for_products();
        sync_block();
        if (multiplies) start_tile<S>(w_tile, x_tile, across, down, sums);
        column += kDepth;
        turn ^= 1;
        read_tile<F, S, kGated>(a, at, column < columns.to ? column : column - kDepth, x_rows, ahead);
    } while (column < columns.to);
    wait_for_products();
    sync_block();  // before the pool is written for another tile
#else
    const bool multiplies = has_products<S, Args>(at, down);
    do {
        sync_block();  // the tile before has been multiplied
        store_tile<F, S>(a.cols, column, ahead, room.w, room.x);
        sync_block();
        column += kDepth;
        // After the last it reads that again.
        read_tile<F, S, kGated>(a, at, column < columns.to ? column : column - kDepth, x_rows, ahead);
        if (multiplies) multiply_tile<S, F::kCrowded || kGated>(room.w, room.x, across, down, sums);
    } while (column < columns.to);
#endif
}

// Where columns are shared out: leaves the sums of a block's share, and adds those of all shares up, in their
// order, in the block that comes last. False in the others, which are done. `flag`: shared memory that no
// wave needs any more when all have come here.
template <typename S>
RL_DEVICE bool add_shares(const args::TileArgs& a, uint32_t tile, uint32_t& flag,
                          MatrixSums (&sums)[S::kDown][S::kAcross]) {
    constexpr uint32_t kElements = S::kDown * S::kAcross * kSumsPerLane;
    float* parts = a.partials + size_t(tile) * a.shares * kElements * kTileThreads + thread_index();
    const auto each = [&](float* of, auto with) {
        RL_UNROLL
        for (uint32_t j = 0; j < S::kDown; ++j) RL_UNROLL
        for (uint32_t i = 0; i < S::kAcross; ++i) RL_UNROLL
        for (uint32_t n = 0; n < kSumsPerLane; ++n)
            sums[j][i].d[n] =
                with(sums[j][i].d[n], of[((j * S::kAcross + i) * kSumsPerLane + n) * kTileThreads]);
    };
    const size_t stride = size_t(kElements) * kTileThreads;
    each(parts + block_index().z * stride, [](float sum, float& part) { return part = sum; });
    if (!is_last_block(a.counters + tile, a.shares, flag)) return false;
    each(parts, [](float, float& part) { return part; });
    RL_UNROLL_BY(1)
    for (uint32_t share = 1; share < a.shares; ++share)
        each(parts + share * stride, [](float sum, float& part) { return sum + part; });
    return true;
}

// The whole of a block's work but for where its activations come from and its results go.
template <typename F, typename S, bool kGated, typename Args, typename RowOf, typename Put>
RL_DEVICE void compute_tile(const Args& a, const TilePlace& at, TileColumns columns, RowOf x_row, Put put) {
    const uint32_t down = kGroups ? wave_index() % S::kWavesDown : wave_index() / S::kWavesAcross,
                   across = kGroups ? wave_index() / S::kWavesDown : wave_index() % S::kWavesAcross;
    RL_SHARED TileRoom<S> room;
    MatrixSums sums[S::kDown][S::kAcross] = {};
    sum_tile<F, S, kGated>(a, at, columns, x_row, across, down, room, sums);
    if constexpr (__is_same(Args, args::TileArgs)) {
        const uint32_t tile = block_index().y * a.token_tiles + block_index().x;
        if (a.shares > 1 && !add_shares<S>(a, tile, room.flag(), sums)) return;
    }
    each_result<S, kGated>(at, across, down, sums, put);
}

// How a block multiplies its tile: in halfs; kernels/byte_tile.h has another way.
struct InHalfs {
    template <uint32_t kRows, uint32_t kTokens, bool kGated>
    using Shape = TileShape<kRows, kTokens, kGated>;
    template <typename F, typename S, bool kGated, typename Args, typename RowOf, typename Put>
    RL_DEVICE static void compute(const Args& a, const TilePlace& at, TileColumns columns, RowOf x_row,
                                  Put put) {
        compute_tile<F, S, kGated>(a, at, columns, x_row, put);
    }
    // The factor of all sums of a row of x.
    template <typename Args>
    RL_DEVICE static float scale(const Args& a, size_t x_row) {
        return a.row_scales[x_row];
    }
};

// y[t][r] (+)= w[r] . x[t] + bias[r], or act(w[r] . x[t]) * (up[r] . x[t]): x over tiles of tokens, y over
// tiles of the rows of up to four matrices, so that blocks that run together share rows of a matrix; z over
// shares of the columns, where there are too few tiles for the device. A weight is decoded to halfs once for
// kTokens tokens. Sums in f32 along the columns in order, a matrix unit's at a time; shares in their order.
template <typename F, uint32_t kRows, uint32_t kTokens, bool kGated, typename Way = InHalfs>
RL_DEVICE void linear_matrix(const args::TileArgs& a) {
    using S = typename Way::template Shape<kRows, kTokens, kGated>;
    const uint32_t tokens = rows_in_step(a.step, a.of_outputs), tile = block_index().y;
    const uint32_t first_token = a.first_token + block_index().x * kTokens;
    if (first_token >= tokens) return;
    const uint32_t part = kGated ? 0 : part_of(a, tile);
    const args::DotPart own = part_at(a, part);
    const uint32_t begin = begin_of(a, part);
    const TilePlace at = {own.w,       a.parts[1].w, own.rows, (tile - begin) * S::kOwnRows,
                          first_token, tokens,       0};
    const uint32_t from = block_index().z * a.share;
    Way::template compute<F, S, kGated>(
        a, at, {from, lesser(from + a.share, a.cols)}, [](uint32_t token) { return size_t(token); },
        [&](uint32_t token, uint32_t row, float sum, float up) {
            if (row >= own.rows || token >= tokens) return;
            const float scale = Way::scale(a, token);
            float& y = own.y[size_t(token) * own.rows + row];
            sum *= scale;
            if constexpr (kGated) {
                y = act_times(a.act, sum, up * scale);
            } else {
                if (own.bias) sum += own.bias[row];
                y = a.accumulate ? y + sum : sum;
            }
        });
}

// y[place][r] = w[e][r] . x, or act(w[e][r] . x) * (up[e][r] . x), with biases: z over experts, y over tiles
// of rows, x over tiles of an expert's places, which a block takes on when there are more.
template <typename F, uint32_t kRows, uint32_t kTokens, bool kGated, typename Way = InHalfs>
RL_DEVICE void expert_matrix(const args::ExpertTileArgs& a) {
    using S = typename Way::template Shape<kRows, kTokens, kGated>;
    const uint32_t expert = block_index().z, begin = a.groups.begin[expert];
    const uint32_t end = begin + a.groups.counts[expert], step = grid_blocks() * kTokens;
    const auto x_row = [&](uint32_t entry) {
        const auto place = uint32_t(a.groups.places[entry]);
        return size_t(a.per_expert ? place : place / a.used);
    };
    for (uint32_t first = begin + block_index().x * kTokens; first < end; first += step) {
        const TilePlace at = {a.w,
                              a.up,
                              a.rows,
                              a.first_row + block_index().y * S::kOwnRows,
                              first,
                              end,
                              size_t(expert) * a.rows};
        Way::template compute<F, S, kGated>(
            a, at, {0, a.cols}, x_row, [&](uint32_t entry, uint32_t row, float sum, float up) {
                if (row >= a.rows || entry >= end) return;
                const float scale = Way::scale(a, x_row(entry));
                const size_t biased = at.matrix_row + row;
                float& y = a.y[size_t(a.groups.places[entry]) * a.rows + row];
                const float own = fused(sum, scale, a.bias ? a.bias[biased] : 0.0f);
                if constexpr (kGated)
                    y = act_times(a.act, own, fused(up, scale, a.bias ? a.up_bias[biased] : 0.0f));
                else
                    y = own;
            });
    }
}

}  // namespace redline::hip
