// Sums and maxima over a block.
#pragma once

#include "kernels/wave.h"

namespace redline::hip {

// The same value in all lanes that differ in these bits.
template <uint32_t kBit, uint32_t kEnd, typename Fold>
RL_DEVICE float fold_lanes(float value, Fold fold) {
    if constexpr (kBit < kEnd)
        return fold_lanes<kBit * 2, kEnd>(fold(value, from_lane_across<kBit>(value)), fold);
    else
        return value;
}

// Adds up kCount values over the lanes that differ in the bits from kBit to below kEnd. Each lane gets its
// share of the sums, at the front, from the one on that first_sum() says; with more lanes than values several
// lanes get the same.
template <uint32_t kCount, uint32_t kBit, uint32_t kEnd>
RL_DEVICE void spread_sums(float* values) {
    if constexpr (kBit < kEnd) {
        constexpr uint32_t kHalf = kCount / 2;
        if constexpr (kHalf == 0) {
            values[0] += from_lane_across<kBit>(values[0]);
            spread_sums<1, kBit * 2, kEnd>(values);
        } else {
            const bool upper = (lane_index() & kBit) != 0;
            RL_UNROLL
            for (uint32_t i = 0; i < kHalf; ++i) {
                const float keep = upper ? values[i + kHalf] : values[i],
                            give = upper ? values[i] : values[i + kHalf];
                values[i] = keep + from_lane_across<kBit>(give);
            }
            spread_sums<kHalf, kBit * 2, kEnd>(values);
        }
    }
}
template <uint32_t kCount, uint32_t kBit, uint32_t kEnd>
RL_DEVICE uint32_t first_sum() {
    if constexpr (kBit < kEnd && kCount > 1)
        return ((lane_index() & kBit) != 0 ? kCount / 2 : 0) + first_sum<kCount / 2, kBit * 2, kEnd>();
    else
        return 0;
}

// Elements go to the threads of a grid of blocks of kThreads, in turns.
template <typename Each>
RL_DEVICE void each_element(size_t count, Each each) {
    const size_t step = size_t(grid_blocks()) * kThreads;
    for (size_t i = size_t(block_index().x) * kThreads + thread_index(); i < count; i += step) each(i);
}

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
template <uint32_t kBlockThreads = kThreads>
RL_DEVICE float block_max(float value, float* parts) {
    const float part = wave_max(value);
    sync_block();
    if (lane_index() == 0) parts[wave_index()] = part;
    sync_block();
    float most = parts[0];
    for (uint32_t i = 1; i < kBlockThreads / kWave; ++i) most = larger(parts[i], most);
    return most;
}

// Both of them, of two values. `parts` is shared memory of two floats per wave of the block.
template <uint32_t kBlockThreads = kThreads>
RL_DEVICE void block_sum_and_max(float& sum, float& most, float* parts) {
    constexpr uint32_t kAll = kBlockThreads / kWave;
    sum = wave_sum(sum);
    most = wave_max(most);
    sync_block();  // the last use of the array is over
    if (lane_index() == 0) {
        parts[wave_index()] = sum;
        parts[kAll + wave_index()] = most;
    }
    sync_block();
    sum = 0.0f;
    most = parts[kAll];
    RL_UNROLL
    for (uint32_t i = 0; i < kAll; ++i) {
        sum += parts[i];
        most = larger(parts[kAll + i], most);
    }
}

// True in the block that is the last of `all` to come here: it sees what the others wrote. `counter` is zero
// before and after.
RL_DEVICE bool is_last_block(uint32_t* counter, uint32_t all, uint32_t& shared_flag) {
    fence_device();
    sync_block();
    if (thread_index() == 0) {
        shared_flag = count_up(counter) == all - 1;
        if (shared_flag) *counter = 0;
    }
    sync_block();
    const bool last = shared_flag != 0;
    if (last) fence_device();
    return last;
}

}  // namespace redline::hip
