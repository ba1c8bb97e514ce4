// Products with a matrix in f32: for a few tokens a wave owns rows of it, for many a block owns a tile.
#pragma once

#include "kernels/unit.h"

namespace redline::hip {

// y[t][r] (+)= w[r] . x[t] + bias[r], all in f32. A wave owns two rows, which share each load of the
// activations; the grid's x strides over such pairs, its y is over groups of kTokens tokens. Lanes stride
// over the columns, each sums in order, and wave_sum() adds the lanes. No shared memory. Quantized are only
// routers here, which are not added to.
template <typename F, int kTokens>
RL_DEVICE void linear_vec(const args::LinearArgs& a) {
    constexpr int kRows = 2;
    const uint32_t tokens = rows_in_step(a.step, a.of_outputs);
    const uint32_t first_token = a.first_token + block_index().y * kTokens;
    if (first_token >= tokens) return;
    size_t x_rows[kTokens];
    RL_UNROLL
    for (uint32_t t = 0; t < kTokens; ++t) x_rows[t] = in_each_lane(lesser(first_token + t, tokens - 1));
    const uint32_t step = grid_blocks() * kWaves * kRows;
    for (uint32_t first = (block_index().x * kWaves + wave_index()) * kRows; first < a.rows; first += step) {
        size_t rows[kRows];
        RL_UNROLL
        for (uint32_t r = 0; r < kRows; ++r) rows[r] = lesser(first + r, a.rows - 1);
        float sums[kRows * kTokens] = {};
        lane_products<F, kRows, kTokens>(a.w, rows, a.x, x_rows, a.cols, sums);
        RL_UNROLL
        for (uint32_t r = 0; r < kRows; ++r) RL_UNROLL
        for (uint32_t t = 0; t < kTokens; ++t) {
            float sum = wave_sum(sums[r * kTokens + t]);
            if (lane_index() != 0 || first + r >= a.rows || first_token + t >= tokens) continue;
            float& y = a.y[x_rows[t] * a.rows + rows[r]];
            if (F::kFloats && a.bias) sum += a.bias[rows[r]];
            y = F::kFloats && a.accumulate ? y + sum : sum;
        }
    }
}

constexpr uint32_t kTile = 64;         // rows and tokens of a block
constexpr uint32_t kTileStride = 68;   // of a column of kTile, padded against bank conflicts
constexpr uint32_t kTileColumns = 32;  // a unit
constexpr uint32_t kTileCells = 256;   // of 4 x 4 results
constexpr uint32_t kCellsPerThread = kTileCells / kTileThreads;

struct alignas(16) Tiles {  // by column
    float w[kTileColumns * kTileStride];
    float x[kTileColumns * kTileStride];
};

struct FloatTile {
    uint32_t rows, cols, tokens;  // there are
    uint32_t first_row, first_token;
};

// 32 columns of one row of the tile.
template <typename F>
RL_DEVICE void load_weight_row(const Matrix& w, size_t row, uint32_t cols, uint32_t column, float* tile) {
    if constexpr (F::kFloats) {
        for (uint32_t c = 0; c < kTileColumns; ++c)
            tile[c * kTileStride] = column + c < cols ? F::element(w, row * cols + column + c) : 0.0f;
    } else {
        const size_t unit = row * (cols / kTileColumns) + column / kTileColumns;
        uint32_t words[8];
        F::codes(w, unit, words);
        const UnitScales s = F::scales(w, unit);
        RL_UNROLL
        for (uint32_t c = 0; c < kTileColumns; ++c)
            tile[c * kTileStride] = decoded<F>(words, s, c / 4, c % 4);
    }
}

// Products of a tile of rows, of which `before` others stand before in the weight, with a tile of tokens. A
// cell of 4 x 4 results sums along the columns in order.
template <typename F, typename Activation>
RL_DEVICE void tile_sums(const Matrix& w, size_t before, const FloatTile& s, Tiles& tiles, Activation x,
                         float (&sums)[kCellsPerThread][4][4]) {
    for (uint32_t column = 0; column < s.cols; column += kTileColumns) {
        sync_block();
        for (uint32_t r = thread_index(); r < kTile; r += kTileThreads)
            load_weight_row<F>(w, before + lesser(s.first_row + r, s.rows - 1), s.cols, column, tiles.w + r);
        for (uint32_t i = thread_index(); i < kTile * kTileColumns; i += kTileThreads) {
            const uint32_t t = i / kTileColumns, c = i % kTileColumns;
            const size_t token = lesser(s.first_token + t, s.tokens - 1);
            tiles.x[c * kTileStride + t] = column + c < s.cols ? x(token, column + c) : 0.0f;
        }
        sync_block();
        for (uint32_t c = 0; c < kTileColumns; ++c) RL_UNROLL
        for (uint32_t n = 0; n < kCellsPerThread; ++n) {
            const uint32_t cell = thread_index() + n * kTileThreads;
            const auto w4 = load<Float4>(tiles.w + c * kTileStride, cell % 16);
            const auto x4 = load<Float4>(tiles.x + c * kTileStride, cell / 16);
            RL_UNROLL
            for (uint32_t j = 0; j < 4; ++j) RL_UNROLL
            for (uint32_t i = 0; i < 4; ++i) sums[n][j][i] = fused(w4.d[i], x4.d[j], sums[n][j][i]);
        }
    }
}

// put(row, token, sum) for those that there are.
template <typename Put>
RL_DEVICE void each_of_tile(const FloatTile& s, const float (&sums)[kCellsPerThread][4][4], Put put) {
    for (uint32_t n = 0; n < kCellsPerThread; ++n) {
        const uint32_t cell = thread_index() + n * kTileThreads;
        RL_UNROLL
        for (uint32_t j = 0; j < 4; ++j) RL_UNROLL
        for (uint32_t i = 0; i < 4; ++i) {
            const uint32_t row = s.first_row + cell % 16 * 4 + i, token = s.first_token + cell / 16 * 4 + j;
            if (row < s.rows && token < s.tokens) put(row, token, sums[n][j][i]);
        }
    }
}

// y[t][r] (+)= w[r] . x[t] + bias[r], all in f32, for many tokens without matrix units: x over tiles of 64
// rows, y over tiles of 64 tokens. Shared memory: 32 columns of both. A thread sums 4 x 4 results along the
// columns in order, so that it multiplies twice for each float that it loads from shared memory.
template <typename F>
RL_DEVICE void linear_tile(const args::LinearArgs& a) {
    RL_SHARED Tiles tiles;
    const uint32_t tokens = rows_in_step(a.step, a.of_outputs);
    const FloatTile shape = {a.rows, a.cols, tokens, block_index().x * kTile,
                             a.first_token + block_index().y * kTile};
    if (shape.first_token >= tokens) return;
    float sums[kCellsPerThread][4][4] = {};
    tile_sums<F>(
        a.w, 0, shape, tiles, [&](size_t token, uint32_t c) { return a.x[token * a.cols + c]; }, sums);
    each_of_tile(shape, sums, [&](uint32_t row, uint32_t token, float sum) {
        float& y = a.y[size_t(token) * a.rows + row];
        if (a.bias) sum += a.bias[row];
        y = a.accumulate ? y + sum : sum;
    });
}

}  // namespace redline::hip
