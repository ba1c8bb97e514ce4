// Products with the matrices of the experts that the router chose.
#pragma once

#include "kernels/dot.h"

namespace redline::hip {

template <typename F>
RL_DEVICE float entry_product(const args::ExpertArgs& a, const Matrix& w, const float* bias, size_t entry,
                              size_t token, uint32_t row) {
    const size_t rows[1] = {expert_row(a, entry, row)}, x_rows[1] = {a.per_expert ? entry : token};
    float sums[1] = {};
    lane_products<F, 1, 1>(w, rows, a.x, x_rows, a.cols, sums);
    if (bias && lane_index() == 0) sums[0] += bias[rows[0]];
    return wave_sum(sums[0]);
}

// y[t][place][r] = w[e][r] . x + bias, or, weighted, y[t][r] += the sum over places of scale * (w[e][r] . x +
// bias). The grid's y is over (token, place), or over tokens when weighted.
template <typename F>
RL_DEVICE void expert_vec(const args::ExpertArgs& a) {
    const uint32_t places = a.scales ? 1 : a.used;
    const size_t group = size_t(a.first_token) * places + block_index().y;
    if (group >= size_t(a.step->rows) * places) return;
    const size_t token = a.first_token + block_index().y / places;
    const uint32_t step = grid_blocks() * kWaves;
    for (uint32_t row = block_index().x * kWaves + wave_index(); row < a.rows; row += step) {
        float& y = a.y[group * a.rows + row];
        if (!a.scales) {
            const float sum = entry_product<F>(a, a.w, a.bias, group, token, row);
            if (lane_index() == 0) y = sum;
            continue;
        }
        float sum = 0.0f;
        for (uint32_t place = 0; place < a.used; ++place) {
            const size_t entry = group * a.used + place;
            sum = fused(a.scales[entry], entry_product<F>(a, a.w, a.bias, entry, token, row), sum);
        }
        if (lane_index() == 0) y += sum;
    }
}

// y[t][place][r] = act(w[e][r] . x[t]) * (up[e][r] . x[t]), with biases; the grid's y is over (token, place).
template <typename F>
RL_DEVICE void expert_gated_vec(const args::ExpertArgs& a) {
    const size_t entry = size_t(a.first_token) * a.used + block_index().y;
    if (entry >= size_t(a.step->rows) * a.used) return;
    const size_t token = a.first_token + block_index().y / a.used;
    const uint32_t step = grid_blocks() * kWaves;
    for (uint32_t row = block_index().x * kWaves + wave_index(); row < a.rows; row += step) {
        const float gate = entry_product<F>(a, a.w, a.bias, entry, token, row),
                    up = entry_product<F>(a, a.up, a.up_bias, entry, token, row);
        if (lane_index() == 0) a.y[entry * a.rows + row] = act_times(a.act, gate, up);
    }
}

}  // namespace redline::hip
