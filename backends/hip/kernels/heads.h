// A product for each head: part h of y = w[h] * part h of x, in f32. Rows of the weights are counted over all
// heads.
#pragma once

#include "kernels/linear.h"

namespace redline::hip {

// This lane's share of the products of a row with each token's activations, which begin at x_at: kShare lanes
// share a row. Activations begin at whole fours, unless a row of floats ends within such.
template <typename F, uint32_t kTokens>
RL_DEVICE void head_products(const args::HeadArgs& a, size_t row, const size_t (&x_at)[kTokens],
                             float (&sums)[kTokens]) {
    const uint32_t lane = thread_index() % kShare;
    if constexpr (F::kFloats) {
        const uint32_t fours = a.cols % 4 == 0 ? a.cols / 4 : 0;
        for (uint32_t i = lane; i < fours; i += kShare) {
            const Float4 w = F::elements(a.w, row * fours + i);
            RL_UNROLL
            for (uint32_t t = 0; t < kTokens; ++t) {
                const auto x = load<Float4>(a.x, x_at[t] / 4 + i);
                RL_UNROLL
                for (uint32_t e = 0; e < 4; ++e) sums[t] = fused(w.d[e], x.d[e], sums[t]);
            }
        }
        for (uint32_t c = fours * 4 + lane; c < a.cols; c += kShare) {
            const float w = F::element(a.w, row * a.cols + c);
            RL_UNROLL
            for (uint32_t t = 0; t < kTokens; ++t) sums[t] = fused(w, a.x[x_at[t] + c], sums[t]);
        }
    } else {
        const size_t units = a.cols / 32;
        for (size_t u = lane; u < units; u += kShare) {
            uint32_t words[8];
            F::codes(a.w, row * units + u, words);
            const UnitScales s = F::scales(a.w, row * units + u);
            RL_UNROLL
            for (uint32_t k = 0; k < 8; ++k) RL_UNROLL
            for (uint32_t t = 0; t < kTokens; ++t) {
                const auto x = load<Float4>(a.x, x_at[t] / 4 + u * 8 + k);
                RL_UNROLL
                for (uint32_t e = 0; e < 4; ++e) sums[t] = fused(decoded<F>(words, s, k, e), x.d[e], sums[t]);
            }
        }
    }
}

// For few tokens: x of the grid over rows, y over groups of kTokens tokens.
template <typename F, uint32_t kTokens>
RL_DEVICE void head_vec(const args::HeadArgs& a) {
    constexpr uint32_t kRows = kThreads / kShare;  // of a block
    const uint32_t tokens = rows_in_step(a.step, a.of_outputs), first_token = block_index().y * kTokens;
    if (first_token >= tokens) return;
    const uint32_t all = a.heads * a.rows;
    for (uint32_t first = block_index().x * kRows; first < all; first += grid_blocks() * kRows) {
        const uint32_t own = first + thread_index() / kShare, row = lesser(own, all - 1);
        const uint32_t head = row / a.rows, r = row % a.rows;
        size_t x_at[kTokens];
        RL_UNROLL
        for (uint32_t t = 0; t < kTokens; ++t)
            x_at[t] = size_t(lesser(first_token + t, tokens - 1)) * a.x_width + head * a.x_stride;
        float sums[kTokens] = {};
        head_products<F>(a, row, x_at, sums);
        RL_UNROLL
        for (uint32_t t = 0; t < kTokens; ++t) {
            const float sum = share_fold(sums[t], [](float x, float y) { return x + y; });
            if (thread_index() % kShare == 0 && own < all && first_token + t < tokens)
                a.y[size_t(first_token + t) * a.y_width + head * a.y_stride + r] = sum;
        }
    }
}

// For many tokens: x over tiles of rows, y over tiles of tokens, z over heads.
template <typename F>
RL_DEVICE void head_tile(const args::HeadArgs& a) {
    RL_SHARED Tiles tiles;
    const uint32_t head = block_index().z, tokens = rows_in_step(a.step, a.of_outputs);
    const FloatTile shape = {a.rows, a.cols, tokens, block_index().x * kTile,
                             a.first_token + block_index().y * kTile};
    if (shape.first_token >= tokens) return;
    float sums[kCellsPerThread][4][4] = {};
    tile_sums<F>(
        a.w, size_t(head) * a.rows, shape, tiles,
        [&](size_t token, uint32_t c) { return a.x[token * a.x_width + head * a.x_stride + c]; }, sums);
    each_of_tile(shape, sums, [&](uint32_t row, uint32_t token, float sum) {
        a.y[size_t(token) * a.y_width + head * a.y_stride + row] = sum;
    });
}

}  // namespace redline::hip
