// How products of few tokens take the rows of halfs that the launch before left, and leave such rows: without
// a launch between them that prepares activations. Halfs are the row's elements times its gain and kHandUp; a
// norm's factor comes with the results. A row whose halfs would lose bits so is prepared again by each block.
#pragma once

#include "kernels/few_args.h"
#include "kernels/halfs.h"

#ifdef RL_FACTORS

namespace redline::hip {

// The threads of a block share these.
template <uint32_t kTokens, uint32_t kBlockThreads>
struct FewHands {
    float scales[kTokens];  // that results are to be multiplied by
    uint32_t unfit;         // some token's halfs are not exact enough
    float parts[kBlockThreads / kWave];
    args::Reach reaches[16 * kTokens];  // of each result of a tile, token by token
};

// Scales of the rows taken, by the block's waves. `unfit` was zero before.
template <uint32_t kTokens, uint32_t kBlockThreads>
RL_DEVICE void take_scales(const args::FewArgs& a, FewHands<kTokens, kBlockThreads>& shared) {
    constexpr uint32_t kAtOnce = 8;  // loads on their way
    const args::TakenHalfs& taken = a.taken;
    const uint32_t tokens = rows_in_step(a.step, a.of_outputs);
    for (uint32_t token = wave_index(); token < tokens; token += kBlockThreads / kWave) {
        const args::Reach* reaches = taken.reaches + size_t(token) * taken.parts;
        float squares = 0.0f, most = 0.0f;
        RL_UNROLL_BY(1)
        for (uint32_t first = lane_index(); first < taken.parts; first += kAtOnce * kWave) {
            args::Reach some[kAtOnce];
            RL_UNROLL
            for (uint32_t n = 0; n < kAtOnce; ++n)
                some[n] = load<args::Reach>(reaches, lesser(first + n * kWave, taken.parts - 1));
            RL_UNROLL
            for (uint32_t n = 0; n < kAtOnce; ++n) {
                squares += first + n * kWave < taken.parts ? some[n].squares : 0.0f;
                most = larger(some[n].most, most);
            }
        }
        squares = wave_sum(squares);
        most = wave_max(most);
        if (lane_index() != 0) continue;
        const float norm = taken.gain ? 1.0f / root_of(squares / float(a.cols) + taken.eps) : 1.0f;
        shared.scales[token] = norm * (1.0f / kHandUp);
        if (most != 0.0f && !(most >= kHandLeast && most <= kHandMost)) shared.unfit = 1;
    }
}

// The block makes all rows anew, by their largest elements. All blocks write the same, and read what they
// wrote.
template <uint32_t kTokens, uint32_t kBlockThreads>
RL_RARE_DEVICE void prepare_again(const args::FewArgs& a, FewHands<kTokens, kBlockThreads>& shared) {
    args::PrepareArgs rows = {};
    rows.step = a.step;
    rows.x = a.taken.x;
    rows.gain = a.taken.gain;
    rows.to = const_cast<uint16_t*>(a.halves);
    rows.cols = a.cols;
    rows.eps = a.taken.eps;
    rows.tokens = kTokens;
    const uint32_t tokens = rows_in_step(a.step, a.of_outputs);
    RL_UNROLL_BY(1)
    for (uint32_t token = 0; token < tokens; ++token) {
        const float down = prepare_few_row<kBlockThreads>(rows, token, shared.parts);
        if (thread_index() == 0) shared.scales[token] = down;
    }
    sync_block();
}

// Where the half of a row's column is, as few_eight() and four_halfs() have it.
RL_DEVICE size_t few_half(uint32_t column, uint32_t token, uint32_t tokens) {
    const uint32_t within = column % 4, swapped = within % 2 * 2 + within / 2;
    return size_t(few_eight(column / 32, column % 32 / 8, token, tokens)) * 8 + column % 8 / 4 * 4 + swapped;
}

// Leaves a result as half, and what is known of it to the block.
template <uint32_t kTokens>
RL_DEVICE void leave_result(const args::FewArgs& a, uint32_t column, uint32_t token, float value,
                            args::Reach* reaches) {
    const float gained = a.left.gain ? value * a.left.gain[column] : value;
    reaches[token * 16 + column % 16] = {value * value, __builtin_fabsf(gained)};
    a.left.halfs[few_half(column, token, kTokens)] = half_bits(gained * kHandUp);
}

// Behind a barrier: what is known of the results of a tile comes together, token by token.
template <uint32_t kBlockThreads>
RL_DEVICE void leave_reaches(const args::FewArgs& a, uint32_t tile, const args::Reach* reaches) {
    const uint32_t tokens = rows_in_step(a.step, a.of_outputs);
    for (uint32_t token = thread_index(); token < tokens; token += kBlockThreads) {
        args::Reach all = {};
        RL_UNROLL
        for (uint32_t row = 0; row < 16; ++row) {
            const args::Reach of = reaches[token * 16 + row];
            all.squares += of.squares;
            all.most = larger(of.most, all.most);
        }
        a.left.reaches[size_t(token) * (a.parts[0].rows / 16) + tile] = all;
    }
}

}  // namespace redline::hip

#endif
