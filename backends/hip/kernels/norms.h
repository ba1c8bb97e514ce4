// Norms of rows or of heads, and what is made of them.
#pragma once

#include "kernels/args.h"
#include "kernels/reduce.h"
#include "kernels/unit.h"

namespace redline::hip {

// Calls each(i, four, gains) for a thread's fours of `count` in x. Some are on their way at a time, whatever
// each() writes.
template <uint32_t kAtOnce = 4, typename Each>
RL_DEVICE void each_four(const float* x, const float* gain, uint32_t count, Each each) {
    RL_UNROLL_BY(1)
    for (uint32_t first = thread_index(); first < count; first += kAtOnce * kThreads) {
        Float4 fours[kAtOnce], gains[kAtOnce];
        RL_UNROLL
        for (uint32_t n = 0; n < kAtOnce; ++n) {
            const uint32_t i = lesser(first + n * kThreads, count - 1);
            fours[n] = load<Float4>(x, i);
            gains[n] = gain ? load<Float4>(gain, i) : Float4{{1.0f, 1.0f, 1.0f, 1.0f}};
        }
        RL_UNROLL
        for (uint32_t n = 0; n < kAtOnce; ++n)
            if (first + n * kThreads < count) each(first + n * kThreads, fours[n], gains[n]);
    }
}

// What is normalised: x, or by ActGate act(gate) * x.
struct OfX {
    RL_DEVICE Float4 four(size_t, const Float4& x) const { return x; }
    RL_DEVICE float one(size_t, float x) const { return x; }
};
// What becomes of what was normalised: itself, by ActGate act(gate) times that, or it is added to a sum.
struct AsItIs {
    static constexpr uint32_t kAtOnce = 4;
    RL_DEVICE Float4 four(size_t, const Float4& y) const { return y; }
    RL_DEVICE float one(size_t, float y) const { return y; }
};
struct ActGate {
    static constexpr uint32_t kAtOnce = 1;  // the heads are short, and the code of activations is long
    const float* gate;
    uint32_t act;

    RL_DEVICE Float4 four(size_t i, const Float4& y) const {
        const auto gates = load<Float4>(gate, i);
        Float4 out;
        RL_UNROLL
        for (uint32_t e = 0; e < 4; ++e) out.d[e] = act_times(act, gates.d[e], y.d[e]);
        return out;
    }
    RL_DEVICE float one(size_t i, float y) const { return act_times(act, gate[i], y); }
};
struct AddTo {
    static constexpr uint32_t kAtOnce = 4;
    const float* sum;

    RL_DEVICE Float4 four(size_t i, const Float4& y) const {
        Float4 out = load<Float4>(sum, i);
        RL_UNROLL
        for (uint32_t e = 0; e < 4; ++e) out.d[e] += y.d[e];
        return out;
    }
    RL_DEVICE float one(size_t i, float y) const { return sum[i] + y; }
};

// A group of rms_norm whose width is a multiple of four.
template <typename Start, typename Finish>
RL_DEVICE void norm_fours(const args::NormArgs& a, const Start& start, const Finish& finish, size_t first,
                          const float* gain, float* parts) {
    const float* x = a.x + first;
    float squares = 0.0f;
    each_four(x, nullptr, a.width / 4, [&](uint32_t i, const Float4& four, const Float4&) {
        const Float4 in = start.four(first / 4 + i, four);
        RL_UNROLL
        for (uint32_t e = 0; e < 4; ++e) squares = fused(in.d[e], in.d[e], squares);
    });
    const float scale = a.factor / root_of(block_sum(squares, parts) / float(a.width) + a.eps);
    const auto scaled = [&](uint32_t i, const Float4& four, const Float4& gains) {
        Float4 out = start.four(first / 4 + i, four);
        RL_UNROLL
        for (uint32_t e = 0; e < 4; ++e) out.d[e] = out.d[e] * scale * gains.d[e];
        reinterpret_cast<Float4*>(a.y + first)[i] = finish.four(first / 4 + i, out);
    };
    each_four<Finish::kAtOnce>(x, gain, a.width / 4, scaled);
}

template <typename Start, typename Finish>
RL_DEVICE void norm_singles(const args::NormArgs& a, const Start& start, const Finish& finish, size_t first,
                            const float* gain, float* parts) {
    float squares = 0.0f;
    for (uint32_t i = thread_index(); i < a.width; i += kThreads) {
        const float in = start.one(first + i, a.x[first + i]);
        squares = fused(in, in, squares);
    }
    const float scale = a.factor / root_of(block_sum(squares, parts) / float(a.width) + a.eps);
    for (uint32_t i = thread_index(); i < a.width; i += kThreads)
        a.y[first + i] =
            finish.one(first + i, start.one(first + i, a.x[first + i]) * scale * (gain ? gain[i] : 1.0f));
}

// rms_norm: each group of a.width elements, a block's at a time, by which the grid's x strides. Squares are
// summed in f32: a thread's fours (elements where the width is no multiple of four) in order, then the
// block's. The row is read twice. `parts`: shared memory, a float for each wave.
template <typename Start, typename Finish>
RL_DEVICE void norm_groups(const args::NormArgs& a, const Start& start, const Finish& finish, float* parts) {
    const size_t groups = size_t(rows_in_step(a.step, a.of_outputs)) * a.groups;
    for (size_t group = block_index().x; group < groups; group += grid_blocks()) {
        const float* gain = a.gain ? a.gain + group % a.gains * a.width : nullptr;
        if (a.width % 4 == 0)
            norm_fours(a, start, finish, group * a.width, gain, parts);
        else
            norm_singles(a, start, finish, group * a.width, gain, parts);
    }
}

// y = scale * (y + norm(first_norm(first) + second_norm(second))), by blocks of kTileThreads, one for each
// row; `parts`: of its waves. What a thread has of a row that is not too wide is all on its way before any of
// it is used.
RL_DEVICE void normed_sum_rows(const args::NormedSumArgs& a, float* parts) {
    constexpr uint32_t kBlock = kTileThreads, kHeld = 12;
    const auto scale_of = [&](float squares, float eps) {
        return 1.0f / root_of(block_sum<kBlock>(squares, parts) / float(a.width) + eps);
    };
    for (size_t row = block_index().x; row < rows_in_step(a.step, a.of_outputs); row += grid_blocks()) {
        const float *first = a.first + row * a.width, *second = a.second + row * a.width;
        float* y = a.y + row * a.width;
        float firsts[kHeld], seconds[kHeld], before[kHeld], gains[kHeld];
        RL_UNROLL
        for (uint32_t n = 0; n < kHeld; ++n) {
            const uint32_t i = lesser(thread_index() + n * kBlock, a.width - 1);
            firsts[n] = first[i];
            seconds[n] = second[i];
            before[n] = y[i];
            gains[n] = a.gain[i];
        }
        const auto is_held = [&](uint32_t n) { return thread_index() + n * kBlock < a.width; };
        const uint32_t rest = thread_index() + kHeld * kBlock;  // elements that are not
        float of_first = 0.0f, of_second = 0.0f, squares = 0.0f;
        RL_UNROLL
        for (uint32_t n = 0; n < kHeld; ++n) {
            of_first += is_held(n) ? firsts[n] * firsts[n] : 0.0f;
            of_second += is_held(n) ? seconds[n] * seconds[n] : 0.0f;
        }
        for (uint32_t i = rest; i < a.width; i += kBlock) {
            of_first = fused(first[i], first[i], of_first);
            of_second = fused(second[i], second[i], of_second);
        }
        const float first_scale = scale_of(of_first, a.first_eps),
                    second_scale = scale_of(of_second, a.second_eps);
        const auto sum_of = [&](float one, float other, uint32_t i) {
            return one * first_scale * a.first_gain[i] + other * second_scale * a.second_gain[i];
        };
        RL_UNROLL
        for (uint32_t n = 0; n < kHeld; ++n) {
            firsts[n] = sum_of(firsts[n], seconds[n], lesser(thread_index() + n * kBlock, a.width - 1));
            squares += is_held(n) ? firsts[n] * firsts[n] : 0.0f;
        }
        for (uint32_t i = rest; i < a.width; i += kBlock) {
            const float sum = sum_of(first[i], second[i], i);
            squares = fused(sum, sum, squares);
        }
        const float scale = scale_of(squares, a.eps);
        RL_UNROLL
        for (uint32_t n = 0; n < kHeld; ++n)
            if (is_held(n))
                y[thread_index() + n * kBlock] = a.scale * (before[n] + firsts[n] * scale * gains[n]);
        for (uint32_t i = rest; i < a.width; i += kBlock)
            y[i] = a.scale * (y[i] + sum_of(first[i], second[i], i) * scale * a.gain[i]);
    }
}

}  // namespace redline::hip
