// Heads normed and turned, and stored in the cache, each by one wave.
#pragma once

#include "kernels/cache.h"
#include "kernels/reduce.h"

namespace redline::hip {

// Head `from` to `head`, which is in shared memory; afterwards the wave's lanes see it.
RL_DEVICE void copy_head(const float* from, uint32_t dims, float* head) {
    RL_FEW_TURNS
    for (uint32_t i = lane_index(); i < dims; i += kWave) head[i] = from[i];
    sync_wave();
}

// Likewise, normed where there is a gain, and turned by what the table has for the row. A lane has whole
// pairs, so that all its loads are on their way at once; `from` is over when put(element, value) is called.
template <typename Put>
RL_DEVICE void turn_head(const args::Turn& turn, bool is_key, uint32_t row, const float* from, uint32_t dims,
                         Put put) {
    const float* gain = is_key ? turn.k_gain : turn.q_gain;
    float scale = 1.0f;
    if (gain) {
        float squares = 0.0f;
        for (uint32_t i = lane_index(); i < dims; i += kWave) squares = fused(from[i], from[i], squares);
        scale = 1.0f / root_of(wave_sum(squares) / float(dims) + (is_key ? turn.k_eps : turn.q_eps));
    }
    const auto value = [&](uint32_t i) { return gain ? from[i] * scale * gain[i] : from[i]; };
    const float* table = turn.table + size_t(row) * 2 * turn.pairs;
    const auto first_of = [&](uint32_t pair) { return turn.half_split ? pair : 2 * pair; };
    const auto second_of = [&](uint32_t pair) { return turn.half_split ? pair + turn.pairs : 2 * pair + 1; };
    constexpr uint32_t kAtOnce = 2;
    for (uint32_t base = lane_index(); base < turn.pairs; base += kAtOnce * kWave) {
        float x[kAtOnce], y[kAtOnce], cosine[kAtOnce], sine[kAtOnce];
        RL_UNROLL
        for (uint32_t n = 0; n < kAtOnce; ++n) {
            const uint32_t pair = lesser(base + n * kWave, turn.pairs - 1);
            x[n] = value(first_of(pair));
            y[n] = value(second_of(pair));
            cosine[n] = table[pair];
            sine[n] = table[turn.pairs + pair];
        }
        RL_UNROLL
        for (uint32_t n = 0; n < kAtOnce; ++n) {
            const uint32_t pair = base + n * kWave;
            if (pair >= turn.pairs) continue;
            put(first_of(pair), x[n] * cosine[n] - y[n] * sine[n]);
            put(second_of(pair), x[n] * sine[n] + y[n] * cosine[n]);
        }
    }
    for (uint32_t i = 2 * turn.pairs + lane_index(); i < dims; i += kWave) put(i, value(i));
    sync_wave();
}

// A head of shared memory to the cache, as number `at`.
template <typename C>
RL_DEVICE void store_head(const Cache& c, Side side, size_t at, const float* head) {
    RL_FEW_TURNS
    for (uint32_t i = lane_index() * C::kGroup; i < c.head_dim; i += kWave * C::kGroup)
        C::store(c, side, at, i, [&](uint32_t e) { return head[e]; });
}

}  // namespace redline::hip
