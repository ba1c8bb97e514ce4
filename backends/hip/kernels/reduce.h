// Sums over a block.
#pragma once

#include "kernels/wave.h"

namespace redline::hip {

// Every thread gets the sum. `parts` is shared memory of kWaves floats.
RL_DEVICE float block_sum(float value, float* parts) {
    const float part = wave_sum(value);
    sync_block();  // the last use of the array is over
    if (lane_index() == 0) parts[wave_index()] = part;
    sync_block();
    float sum = 0.0f;
    for (uint32_t i = 0; i < kWaves; ++i) sum += parts[i];
    return sum;
}

}  // namespace redline::hip
