// Heads normed and turned, and stored in the cache, each by one wave.
#pragma once

#include "kernels/cache.h"
#include "kernels/reduce.h"

namespace redline::hip {

// Head `from` to `head`, which is in shared memory; afterwards the wave's lanes see it.
RL_DEVICE void copy_head(const float* from, uint32_t dims, float* head) {
    for (uint32_t i = lane_index(); i < dims; i += kWave) head[i] = from[i];
    sync_wave();
}

// Likewise, normed where there is a gain, and turned by what the table has for the row.
RL_DEVICE void turn_head(const args::Turn& turn, bool is_key, uint32_t row, const float* from, uint32_t dims,
                         float* head) {
    float squares = 0.0f;
    for (uint32_t i = lane_index(); i < dims; i += kWave) {
        const float x = from[i];
        head[i] = x;
        squares = fused(x, x, squares);
    }
    if (const float* gain = is_key ? turn.k_gain : turn.q_gain) {
        const float mean = wave_sum(squares) / float(dims);
        const float scale = 1.0f / root_of(mean + (is_key ? turn.k_eps : turn.q_eps));
        for (uint32_t i = lane_index(); i < dims; i += kWave) head[i] = head[i] * scale * gain[i];
    }
    sync_wave();
    const float* table = turn.table + size_t(row) * 2 * turn.pairs;
    for (uint32_t pair = lane_index(); pair < turn.pairs; pair += kWave) {
        const uint32_t first = turn.half_split ? pair : 2 * pair,
                       second = turn.half_split ? pair + turn.pairs : first + 1;
        const float cosine = table[pair], sine = table[turn.pairs + pair], x = head[first], y = head[second];
        head[first] = x * cosine - y * sine;
        head[second] = x * sine + y * cosine;
    }
    sync_wave();
}

// A head of shared memory to the cache, as number `at`.
template <typename C>
RL_DEVICE void store_head(const Cache& c, uint8_t* data, size_t at, const float* head) {
    for (uint32_t i = lane_index() * C::kGroup; i < c.head_dim; i += kWave * C::kGroup)
        C::store(c, data, at, i, [&](uint32_t e) { return head[e]; });
}

}  // namespace redline::hip
