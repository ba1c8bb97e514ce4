// The state space of Mamba-2, row after row of a sequence.
#pragma once

#include "kernels/args.h"
#include "kernels/reduce.h"
#include "kernels/unit.h"

namespace redline::hip {

// How a state space is divided: kLanes lanes share kRows rows of a head's state, and each has four of every
// 4 * kLanes elements of them: at most kStates.
template <uint32_t kMostStates, uint32_t kSharing, uint32_t kRowsEach>
struct ScanCut {
    static constexpr uint32_t kStates = kMostStates, kLanes = kWave < kSharing ? 1 : kSharing,
                              kRows = kRowsEach, kApart = kThreads / kLanes,  // the rows of a lane are
        kBlock = kApart * kRows;                                              // rows that a block has
    static constexpr uint32_t kTokens = 8;  // whose inputs are shared at a time
};

template <typename Cut>
struct ScanShared {
    Float4 ins[Cut::kTokens * Cut::kStates / 4], outs[Cut::kTokens * Cut::kStates / 4];
    float values[Cut::kTokens * Cut::kBlock];
    float decays[Cut::kTokens], sizes[Cut::kTokens];  // the size of a step
};

// Elements 4 * i .. of a vector; zeros behind its end.
RL_DEVICE Float4 quad_of(const float* vector, uint32_t elements, uint32_t i) {
    Float4 quad;
    RL_UNROLL
    for (uint32_t e = 0; e < 4; ++e) quad.d[e] = 4 * i + e < elements ? vector[4 * i + e] : 0.0f;
    return quad;
}

template <typename Cut>
RL_DEVICE void share_scan(const args::ScanArgs& args, ScanShared<Cut>& shared, size_t row, uint32_t count,
                          uint32_t head, uint32_t first) {
    constexpr uint32_t kQuads = Cut::kStates / 4;
    const size_t inner = size_t(args.heads) * args.head_dim, all = size_t(args.groups) * args.state_dim,
                 width = inner + 2 * all;
    const size_t begin = inner + size_t(head / (args.heads / args.groups)) * args.state_dim;
    sync_block();  // the rows before are done
    for (uint32_t i = thread_index(); i < count * kQuads; i += kThreads) {
        const float* in = args.x + (row + i / kQuads) * width + begin;
        shared.ins[i] = quad_of(in, args.state_dim, i % kQuads);
        shared.outs[i] = quad_of(in + all, args.state_dim, i % kQuads);
    }
    const float* values = args.x + row * width + size_t(head) * args.head_dim;
    for (uint32_t i = thread_index(); i < count * Cut::kBlock; i += kThreads)
        shared.values[i] =
            values[i / Cut::kBlock * width + lesser(first + i % Cut::kBlock, args.head_dim - 1)];
    for (uint32_t t = thread_index(); t < count; t += kThreads) {
        const float size = softplus(args.steps[(row + t) * args.heads + head] + args.step_bias[head]);
        shared.decays[t] = exp_of(args.a[head] * size);
        shared.sizes[t] = size;
    }
    sync_block();
}

// What a lane has of a state.
template <typename Cut>
struct ScanRows {
    static constexpr uint32_t kQuads = Cut::kStates / (4 * Cut::kLanes);
    float d[Cut::kRows][kQuads * 4];
    uint32_t lane, first;  // of the lanes that share rows; the first of these

    RL_DEVICE uint32_t row(uint32_t r) const { return first + r * Cut::kApart; }

    // Beyond its end the state's last elements: they are multiplied by zeros, or are of rows that are not
    // kept.
    RL_DEVICE void load_from(const float* state, const args::ScanArgs& args) {
        const bool whole = args.state_dim % 4 == 0;
        const uint32_t last = args.state_dim - 1;
        RL_UNROLL
        for (uint32_t r = 0; r < Cut::kRows; ++r) {
            const uint32_t begin = lesser(row(r), args.head_dim - 1) * args.state_dim;
            RL_UNROLL
            for (uint32_t i = 0; i < kQuads; ++i) {
                const uint32_t at = (i * Cut::kLanes + lane) * 4;
                const Float4 four =
                    whole
                        ? load<Float4>(state, (begin + lesser(at, last - 3)) / 4)
                        : Float4{{state[begin + lesser(at, last)], state[begin + lesser(at + 1, last)],
                                  state[begin + lesser(at + 2, last)], state[begin + lesser(at + 3, last)]}};
                RL_UNROLL
                for (uint32_t e = 0; e < 4; ++e) d[r][4 * i + e] = four.d[e];
            }
        }
    }
    RL_DEVICE void store_to(float* state, const args::ScanArgs& args) const {
        // Or what a comparison says while the state is loaded is kept in scalar registers.
        const uint32_t own = uint32_t(in_each_lane(lane));
        RL_UNROLL
        for (uint32_t r = 0; r < Cut::kRows; ++r) {
            if (row(r) >= args.head_dim) continue;
            float* to = state + row(r) * args.state_dim;
            RL_UNROLL
            for (uint32_t i = 0; i < kQuads; ++i) {
                const uint32_t at = (i * Cut::kLanes + own) * 4;
                if (args.state_dim % 4 == 0 && at < args.state_dim) {
                    *reinterpret_cast<Float4*>(to + at) = {
                        {d[r][4 * i], d[r][4 * i + 1], d[r][4 * i + 2], d[r][4 * i + 3]}};
                    continue;
                }
                RL_UNROLL
                for (uint32_t e = 0; e < 4; ++e)
                    if (at + e < args.state_dim) to[at + e] = d[r][4 * i + e];
            }
        }
    }

    // One row of the sequence, whose inputs are shared as number t: y becomes what it reads.
    RL_DEVICE void run(const ScanShared<Cut>& shared, uint32_t t, const float* values, float* y) {
        const Float4 *ins = shared.ins + t * (Cut::kStates / 4) + lane,
                     *outs = shared.outs + t * (Cut::kStates / 4) + lane;
        const auto add = [](float a, float b) { return a + b; };
        const float decay = shared.decays[t], size = shared.sizes[t];
        float put[Cut::kRows];
        RL_UNROLL
        for (uint32_t r = 0; r < Cut::kRows; ++r) {
            put[r] = size * values[r];
            y[r] = 0.0f;
        }
        RL_UNROLL
        for (uint32_t i = 0; i < kQuads; ++i) {
            const Float4 in = ins[i * Cut::kLanes], out = outs[i * Cut::kLanes];
            RL_UNROLL
            for (uint32_t e = 0; e < 4; ++e) {
                RL_UNROLL
                for (uint32_t r = 0; r < Cut::kRows; ++r) {
                    float& held = d[r][4 * i + e];
                    held = fused(put[r], in.d[e], decay * held);
                    y[r] = fused(held, out.d[e], y[r]);
                }
            }
        }
        RL_UNROLL
        for (uint32_t r = 0; r < Cut::kRows; ++r) y[r] = fold_lanes<1, Cut::kLanes>(y[r], add);
    }
};

// A block per sequence, head and block of the state's rows, which stays in registers.
//   S = decay S + (size x) in, y = S out + through x
// Sums in f32: within a lane in order, then across lanes.
template <typename Cut>
RL_DEVICE void scan_head(const args::ScanArgs& args, ScanShared<Cut>& shared,
                         const args::SegmentState& segment, uint32_t head, uint32_t first) {
    const uint32_t begin = segment.first_row < args.first_row ? args.first_row : segment.first_row,
                   end = lesser(segment.first_row + segment.rows, args.end_row);
    if (begin >= end) return;
    const size_t size = size_t(args.head_dim) * args.state_dim;
    const auto state = [&](uint32_t row) { return args.state + (size_t(row) * args.heads + head) * size; };
    const uint32_t of_block = thread_index() / Cut::kLanes;
    ScanRows<Cut> own = {};
    own.lane = thread_index() % Cut::kLanes;
    own.first = first + of_block;
    // The rows before these of the same sequence have left its state.
    const uint32_t from = begin == segment.first_row ? segment.from : segment.to;
    if (from != args::kZeroState) own.load_from(state(from), args);
    for (uint32_t row = begin; row < end; row += Cut::kTokens) {
        const uint32_t count = lesser(Cut::kTokens, end - row);
        const size_t in_lanes = in_each_lane(row);
        share_scan(args, shared, in_lanes, count, head, first);
        for (uint32_t t = 0; t < count; ++t) {
            float values[Cut::kRows], y[Cut::kRows];
            RL_UNROLL
            for (uint32_t r = 0; r < Cut::kRows; ++r)
                values[r] = shared.values[t * Cut::kBlock + r * Cut::kApart + of_block];
            own.run(shared, t, values, y);
            float* to = args.y + ((in_lanes + t) * args.heads + head) * args.head_dim;
            RL_UNROLL
            for (uint32_t r = 0; r < Cut::kRows; ++r)
                if (own.lane == r % Cut::kLanes && own.row(r) < args.head_dim)
                    to[own.row(r)] = fused(args.through[head], values[r], y[r]);
            const uint32_t kept = state_behind(args.step, row + t);
            if (kept != args::kZeroState) own.store_to(state(kept), args);
        }
    }
    own.store_to(state(segment.to), args);
}

template <typename Cut>
RL_DEVICE void scan_all(const args::ScanArgs& args, ScanShared<Cut>& shared) {
    const uint32_t blocks = (args.head_dim + Cut::kBlock - 1) / Cut::kBlock, units = args.heads * blocks;
    for (uint32_t n = block_index().x; n < units * args.step->segments; n += grid_blocks())
        scan_head(args, shared, args.states[n / units], uint32_t(in_each_lane(n / blocks % args.heads)),
                  n % blocks * Cut::kBlock);
}

}  // namespace redline::hip
