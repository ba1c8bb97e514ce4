// Sums and maxima over a block.
#pragma once

#include "kernels/wave.h"

namespace redline::hip {

// Every thread gets the sum. `parts` is shared memory of one float per wave of the block.
template <uint32_t kBlockThreads = kThreads>
RL_DEVICE float block_sum(float value, float* parts) {
    const float part = wave_sum(value);
    sync_block();  // the last use of the array is over
    if (lane_index() == 0) parts[wave_index()] = part;
    sync_block();
    float sum = 0.0f;
    for (uint32_t i = 0; i < kBlockThreads / kWave; ++i) sum += parts[i];
    return sum;
}

// Likewise the largest.
RL_DEVICE float block_max(float value, float* parts) {
    const float part = wave_max(value);
    sync_block();
    if (lane_index() == 0) parts[wave_index()] = part;
    sync_block();
    float most = parts[0];
    for (uint32_t i = 1; i < kWaves; ++i) most = larger(parts[i], most);
    return most;
}

}  // namespace redline::hip
