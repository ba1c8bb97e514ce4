// Products of many tokens with a quantized matrix in int8, on matrix units: as kernels/tile.h, with tiles of
// codes. Products are summed exactly in integers for 32 columns, then scaled and added in f32.
#pragma once

#include "kernels/bytes.h"
#include "kernels/tile.h"

namespace redline::hip {

// kRows rows of the matrix by kTokens tokens, kDepth columns at a time: two units.
template <uint32_t kRows, uint32_t kTokens, bool kGated>
struct ByteShape {
    static constexpr uint32_t kOfWeights = kRows, kOfTokens = kTokens;
    static constexpr uint32_t kUnits = kRows * 2, kUnitsEach = (kUnits + kTileThreads - 1) / kTileThreads;
    static constexpr uint32_t kChunks = kTokens * 4,  // of 16 codes of activations
        kChunksEach = (kChunks + kTileThreads - 1) / kTileThreads;
    static constexpr uint32_t kMetas = kTokens * 2, kMetasEach = (kMetas + kTileThreads - 1) / kTileThreads;
    // Waves over tokens, and over rows; then the matrices of sums that each has.
    static constexpr bool kTurned = false;
    static constexpr uint32_t kWavesDown = kTileWaves > 4   ? 2
                                           : kTileWaves > 1 ? (kTokens < 64 ? 1 : 2)
                                                            : 1,
                              kWavesAcross = kTileWaves / kWavesDown;
    static constexpr uint32_t kAcross = kRows / (16 * kWavesAcross), kDown = kTokens / (16 * kWavesDown);
    static constexpr uint32_t kOwnRows = kGated ? kRows / 2 : kRows;  // of y
    static constexpr uint32_t kPairRows = 16;
    static_assert(!kGated || kAcross % 2 == 0);
};

// Tiles in shared memory, with the numbers of their units. A unit's scale of a token has 22 bits at most.
template <typename F, typename S>
struct ByteTiles {
    Words4 w[S::kOfWeights * kByteStride / 16], x[S::kOfTokens * kByteStride / 16];
    alignas(16) float w_scales[2][S::kOfWeights];
    alignas(16) float w_offsets[F::kOffset ? 2 : 1][F::kOffset ? S::kOfWeights : 4];
    alignas(16) float x_scales[2][S::kOfTokens];
    alignas(16) float x_sums[F::kOffset ? 2 : 1][F::kOffset ? S::kOfTokens : 4];  // of the unit's elements
};

// Sixteen codes of a row of a tile.
RL_DEVICE void put_bytes(Words4* tile, uint32_t row, uint32_t chunk, const Words4& codes) {
    uint8_t* to = reinterpret_cast<uint8_t*>(tile) + row * kByteStride + chunk * 16;
    if constexpr (kByteStride % 16 == 0) {
        *reinterpret_cast<Words4*>(to) = codes;
    } else {
        auto* halves = reinterpret_cast<Words2*>(to);
        halves[0] = {{codes.d[0], codes.d[1]}};
        halves[1] = {{codes.d[2], codes.d[3]}};
    }
}

// A thread's part of the tiles that come next. Of activations: codes, and of a unit its scale and sum.
template <typename F, typename S>
struct BytesAhead {
    WeightsAhead<F, S> w;
    Words4 x[S::kChunksEach];
    Words2 metas[S::kMetasEach];
};

// The first units of the rows that this thread reads codes and numbers of.
template <typename S>
struct UnitsAhead {
    uint32_t of_chunks[S::kChunksEach], of_metas[S::kMetasEach];
};
template <typename S, typename Args, typename RowOf>
RL_DEVICE UnitsAhead<S> units_ahead(const Args& a, const TilePlace& at, RowOf x_row) {
    UnitsAhead<S> units;
    const auto first = [&](uint32_t entry) {
        return uint32_t(x_row(lesser(at.first_entry + entry, at.entries - 1))) * (a.cols / 32);
    };
    RL_UNROLL
    for (uint32_t n = 0; n < S::kChunksEach; ++n)
        units.of_chunks[n] = first(lesser(n * kTileThreads + thread_index(), S::kChunks - 1) / 4);
    RL_UNROLL
    for (uint32_t n = 0; n < S::kMetasEach; ++n)
        units.of_metas[n] = first(lesser(n * kTileThreads + thread_index(), S::kMetas - 1) / 2);
    return units;
}

// Past the last column it is the last unit, which store_bytes() gives weights of zero.
template <typename F, typename S, bool kGated, typename Args>
RL_DEVICE void read_bytes(const Args& a, const TilePlace& at, uint32_t column, const UnitsAhead<S>& units,
                          BytesAhead<F, S>& ahead) {
    ahead.w.template read<kGated>(at, a.cols, column);
    const uint32_t last = a.cols / 32 - 1;
    RL_UNROLL
    for (uint32_t n = 0; n < S::kChunksEach; ++n) {
        const uint32_t chunk = (n * kTileThreads + thread_index()) % 4;
        const size_t unit = units.of_chunks[n] + lesser(column / 32 + chunk / 2, last);
        ahead.x[n] = load<Words4>(a.halves, unit * 2 + chunk % 2);
    }
    RL_UNROLL
    for (uint32_t n = 0; n < S::kMetasEach; ++n) {
        const uint32_t unit = (n * kTileThreads + thread_index()) % 2;
        ahead.metas[n] = load<Words2>(a.row_scales, units.of_metas[n] + lesser(column / 32 + unit, last));
    }
}

template <typename F, typename S>
RL_DEVICE void store_bytes(uint32_t cols, uint32_t column, BytesAhead<F, S>& ahead, ByteTiles<F, S>& tiles) {
    RL_UNROLL
    for (uint32_t n = 0; n < S::kUnitsEach; ++n) {
        const uint32_t i = n * kTileThreads + thread_index();
        if (S::kUnits % kTileThreads != 0 && i >= S::kUnits) break;
        UnitAhead<F>& unit = ahead.w.units[n];
        if (column + i % 2 * 32 >= cols) unit.clear();
        RL_UNROLL
        for (uint32_t k = 0; k < 2; ++k)
            put_bytes(tiles.w, i / 2, i % 2 * 2 + k,
                      {{unit.codes.bytes(4 * k), unit.codes.bytes(4 * k + 1), unit.codes.bytes(4 * k + 2),
                        unit.codes.bytes(4 * k + 3)}});
        tiles.w_scales[i % 2][i / 2] = unit.s.scale[0];
        if constexpr (F::kOffset) tiles.w_offsets[i % 2][i / 2] = unit.s.offset[0];
    }
    RL_UNROLL
    for (uint32_t n = 0; n < S::kChunksEach; ++n) {
        const uint32_t i = n * kTileThreads + thread_index();
        if (S::kChunks % kTileThreads != 0 && i >= S::kChunks) break;
        put_bytes(tiles.x, i / 4, i % 4, ahead.x[n]);
    }
    RL_UNROLL
    for (uint32_t n = 0; n < S::kMetasEach; ++n) {
        const uint32_t i = n * kTileThreads + thread_index();
        if (S::kMetas % kTileThreads != 0 && i >= S::kMetas) break;
        tiles.x_scales[i % 2][i / 2] = bits_float(ahead.metas[n].d[0]);
        if constexpr (F::kOffset) tiles.x_sums[i % 2][i / 2] = bits_float(ahead.metas[n].d[1]);
    }
}

// The numbers that a unit has in the rows of a lane's sums,
template <typename F>
struct RowNumbers {
    float scale[kSumsPerLane], offset[F::kOffset ? kSumsPerLane : 1];
    template <typename S>
    RL_DEVICE void read(const ByteTiles<F, S>& tiles, uint32_t unit, uint32_t first) {
        RL_UNROLL
        for (uint32_t n = 0; n < kSumsPerLane; ++n) {
            scale[n] = tiles.w_scales[unit][first + sum_row(n)];
            if constexpr (F::kOffset) offset[n] = tiles.w_offsets[unit][first + sum_row(n)];
        }
    }
};
// and in their tokens.
template <typename F>
struct TokenNumbers {
    float scale[kSumsPerLane], start[kSumsPerLane], sum[F::kOffset ? kSumsPerLane : 1];
    template <typename S>
    RL_DEVICE void read(const ByteTiles<F, S>& tiles, uint32_t unit, uint32_t first) {
        RL_UNROLL
        for (uint32_t n = 0; n < kSumsPerLane; ++n) {
            scale[n] = tiles.x_scales[unit][first + sum_column(n)];
            start[n] = -kByteStartValue * scale[n];
            if constexpr (F::kOffset) sum[n] = tiles.x_sums[unit][first + sum_column(n)];
        }
    }
};

// The products of a unit, scaled: two instructions of each, or with offsets three.
template <typename F>
RL_DEVICE void add_scaled(const ByteSums& products, const RowNumbers<F>& w, const TokenNumbers<F>& x,
                          MatrixSums& sums) {
    RL_UNROLL
    for (uint32_t n = 0; n < kSumsPerLane; ++n) {
        const float value = fused(bits_float(uint32_t(products.d[n])), x.scale[n], x.start[n]);
        float sum = fused(w.scale[n], value, sums.d[n]);
        if constexpr (F::kOffset) sum = fused(w.offset[n], x.sum[n], sum);
        sums.d[n] = sum;
    }
}

// Rows of sums are rows of the matrix, whose numbers a wave reads once for all its tokens; of a token's it
// reads as many as a lane has columns of a matrix of sums.
template <typename F, typename S>
RL_DEVICE void multiply_bytes(const ByteTiles<F, S>& tiles, uint32_t across, uint32_t down,
                              MatrixSums (&sums)[S::kDown][S::kAcross]) {
    const uint32_t first_row = across * S::kAcross * 16, first_token = down * S::kDown * 16;
    const auto tile = [](const Words4* of, uint32_t row, uint32_t unit) {
        return reinterpret_cast<const uint8_t*>(of) + row * kByteStride + unit * 32;
    };
    RL_UNROLL_BY(1)
    for (uint32_t unit = 0; unit < 2; ++unit) {
#if defined(__GFX10__)
        ByteTile x[S::kDown];
        TokenNumbers<F> of_x[S::kDown];
        RL_UNROLL
        for (uint32_t j = 0; j < S::kDown; ++j) {
            x[j] = load_bytes(tile(tiles.x, first_token + j * 16, unit));
            of_x[j].read(tiles, unit, first_token + j * 16);
        }
        RL_UNROLL
        for (uint32_t i = 0; i < S::kAcross; ++i) {
            RowNumbers<F> of_w;
            of_w.read(tiles, unit, first_row + i * 16);
            ByteSums products[S::kDown];
            multiply_bytes_all(tile(tiles.w, first_row + i * 16, unit), x, products);
            RL_UNROLL
            for (uint32_t j = 0; j < S::kDown; ++j) add_scaled(products[j], of_w, of_x[j], sums[j][i]);
        }
#else
        ByteTile w[S::kAcross];
        RowNumbers<F> of_w[S::kAcross];
        RL_UNROLL
        for (uint32_t i = 0; i < S::kAcross; ++i) {
            w[i] = load_bytes(tile(tiles.w, first_row + i * 16, unit));
            of_w[i].read(tiles, unit, first_row + i * 16);
        }
        RL_UNROLL
        for (uint32_t j = 0; j < S::kDown; ++j) {
            const ByteTile x = load_bytes(tile(tiles.x, first_token + j * 16, unit));
            TokenNumbers<F> of_x;
            of_x.read(tiles, unit, first_token + j * 16);
            ByteSums products[S::kAcross];
            RL_UNROLL
            for (uint32_t i = 0; i < S::kAcross; ++i) {
                products[i] = begin_byte_sums();
                multiply_add_bytes(w[i], x, products[i]);
            }
            RL_UNROLL
            for (uint32_t i = 0; i < S::kAcross; ++i) add_scaled(products[i], of_w[i], of_x, sums[j][i]);
            keep_order();
        }
#endif
    }
}

// Rows of sums become tokens, as each_result() has them: lanes then write results that lie beside each other.
// `room`: shared memory of this wave.
constexpr uint32_t kRoomStride = 17, kRoom = 16 * kRoomStride;
template <typename S>
RL_DEVICE void exchange_rows(float* room, MatrixSums (&sums)[S::kDown][S::kAcross]) {
    RL_UNROLL
    for (uint32_t j = 0; j < S::kDown; ++j) RL_UNROLL
    for (uint32_t i = 0; i < S::kAcross; ++i) {
        RL_UNROLL
        for (uint32_t n = 0; n < kSumsPerLane; ++n)
            room[sum_row(n) * kRoomStride + sum_column(n)] = sums[j][i].d[n];
        sync_wave();
        RL_UNROLL
        for (uint32_t n = 0; n < kSumsPerLane; ++n)
            sums[j][i].d[n] = room[sum_column(n) * kRoomStride + sum_row(n)];
        sync_wave();
    }
}

struct InBytes {
    template <uint32_t kRows, uint32_t kTokens, bool kGated>
    using Shape = ByteShape<kRows, kTokens, kGated>;
    template <typename F, typename S, bool kGated, typename Args, typename RowOf, typename Put>
    RL_DEVICE static void compute(const Args& a, const TilePlace& at, TileColumns columns, RowOf x_row,
                                  Put put) {
        RL_SHARED ByteTiles<F, S> tiles;
        const uint32_t down = wave_index() / S::kWavesAcross, across = wave_index() % S::kWavesAcross;
        MatrixSums sums[S::kDown][S::kAcross] = {};
        BytesAhead<F, S> ahead;
        const UnitsAhead<S> units = units_ahead<S>(a, at, x_row);
        const bool multiplies = has_products<S, Args>(at, down);
        uint32_t column = columns.from;
        read_bytes<F, S, kGated>(a, at, column, units, ahead);
        do {
            sync_block();  // the tile before has been multiplied
            store_bytes<F, S>(a.cols, column, ahead, tiles);
            sync_block();
            column += kDepth;
            // After the last it reads that again.
            read_bytes<F, S, kGated>(a, at, column < columns.to ? column : column - kDepth, units, ahead);
            if (multiplies) multiply_bytes<F, S>(tiles, across, down, sums);
        } while (column < columns.to);
        sync_block();  // the last tile has been multiplied
        static_assert(sizeof(tiles.w) + sizeof(tiles.x) >= kTileWaves * kRoom * sizeof(float));
        exchange_rows<S>(reinterpret_cast<float*>(tiles.w) + wave_index() * kRoom, sums);
        if constexpr (__is_same(Args, args::TileArgs)) {
            const uint32_t tile = block_index().y * a.token_tiles + block_index().x;
            if (a.shares > 1 && !add_shares<S>(a, tile, tiles.w[0].d[0], sums)) return;
        }
        each_result<S, kGated>(at, across, down, sums, put);
    }
    template <typename Args>
    RL_DEVICE static float scale(const Args&, size_t) {
        return 1.0f;
    }
};

}  // namespace redline::hip
