// What rows of the gated delta rule see of each other, of groups of eight: a launch of its own before the
// rule, since groups need not wait for each other here, and the blocks of a head's columns would each do it
// again.
#pragma once

#include "kernels/delta_args.h"
#include "kernels/reduce.h"
#include "kernels/scan.h"
#include "kernels/unit.h"

namespace redline::hip {

using args::DeltaArgs;
using args::DeltaPairs;
using args::SegmentState;

// The same number, of which the compiler knows nothing: what is computed from it is not kept over a loop,
// where it would fill the registers.
RL_DEVICE uint32_t anew(uint32_t value) {
#if defined(__HIP__)
    asm volatile("" : "+v"(value));
#elif defined(__CUDA_ARCH__)
    asm volatile("" : "+r"(value));
#endif
    return value;
}

// By how much a row leaves of the state, and how much of its change it takes.
struct DeltaGates {
    float decay, gate;
};
RL_DEVICE DeltaGates delta_gates(float alpha, float beta, float a, float dt) {
    const float x = alpha + dt;
    return {exp_of(a * (x > 20.0f ? x : log_of(1.0f + exp_of(x)))), sigmoid(beta)};
}

// The rows of a step that a launch takes of a sequence.
struct DeltaSpan {
    uint32_t begin, end;
};
RL_DEVICE DeltaSpan delta_span(const DeltaArgs& args, const SegmentState& segment) {
    const uint32_t behind = segment.first_row + segment.rows;
    return {segment.first_row < args.first_row ? args.first_row : segment.first_row,
            lesser(behind, args.end_row)};
}
RL_DEVICE uint32_t heads_of_key(const DeltaArgs& args) {
    return args.heads / args.key_heads;
}

// Of the rows of a group: their vectors, of at most kKeys elements, the products of these, of which each is
// by kLanes lanes, and the gates of some heads.
template <uint32_t kMostKeys>
struct PairShared {
    static constexpr uint32_t kKeys = kMostKeys, kQuads = kKeys / 4, kRows = args::kDeltaRows,
                              kLanes = kWave < 16 ? 1 : 16, kRowLanes = kLanes < kRows ? kLanes : kRows,
                              kClusters = kThreads / kLanes, kHeads = 16;  // whose gates there is room for
    Float4 queries[kRows * kQuads], keys[kRows * kQuads];
    float by_keys[kRows][kRows], by_queries[kRows][kRows];
    float key_squares[kRows], query_squares[kRows];
    DeltaGates gates[kHeads][kRows];
};

// The products of a row's key and query with four rows' keys, and the query's square, by the lanes of a
// cluster.
template <typename Shared>
RL_DEVICE void multiply_pairs(Shared& shared) {
    constexpr uint32_t kQuads = Shared::kQuads, kRows = Shared::kRows, kFours = kRows * kRows / 4,
                       kTurns = (kFours + Shared::kClusters - 1) / Shared::kClusters;
    const uint32_t thread = anew(thread_index()), lane = thread % Shared::kLanes;
    const auto add = [](float a, float b) { return a + b; };
    RL_UNROLL_BY(2)
    for (uint32_t n = 0; n < kTurns; ++n) {
        const uint32_t four = lesser(n * Shared::kClusters + thread / Shared::kLanes, kFours - 1),
                       t = four * 4 / kRows, before = four * 4 % kRows;
        float sums[8] = {}, square = 0.0f;  // with the key, then with the query
        RL_UNROLL
        for (uint32_t i = 0; i < kQuads / Shared::kLanes; ++i) {
            keep_order();
            const uint32_t at = i * Shared::kLanes + lane;
            const Float4 k = shared.keys[t * kQuads + at], q = shared.queries[t * kQuads + at];
            RL_UNROLL
            for (uint32_t e = 0; e < 4; ++e) square = fused(q.d[e], q.d[e], square);
            RL_UNROLL
            for (uint32_t m = 0; m < 4; ++m) {
                const Float4 other = shared.keys[(before + m) * kQuads + at];
                RL_UNROLL
                for (uint32_t e = 0; e < 4; ++e) {
                    sums[m] = fused(k.d[e], other.d[e], sums[m]);
                    sums[4 + m] = fused(q.d[e], other.d[e], sums[4 + m]);
                }
            }
        }
        spread_sums<8, 1, Shared::kRowLanes>(sums);
        square = fold_lanes<1, Shared::kLanes>(square, add);
        if (lane == 0) shared.query_squares[t] = square;
        RL_UNROLL
        for (uint32_t i = 0; i < 8 / Shared::kRowLanes; ++i) {
            const float sum = fold_lanes<Shared::kRowLanes, Shared::kLanes>(sums[i], add);
            const uint32_t which = first_sum<8, 1, Shared::kRowLanes>() + i, s = before + which % 4;
            if (lane >= Shared::kRowLanes) continue;
            (which >= 4 ? shared.by_queries : shared.by_keys)[t][s] = sum;
            if (which < 4 && s == t) shared.key_squares[t] = sum;
        }
    }
}

// Of a pair of rows, s and t, what head's `gates` make of their products.
template <typename Shared>
RL_DEVICE void leave_pair(const DeltaArgs& args, const Shared& shared, const DeltaGates* gates, uint32_t t,
                          uint32_t s, DeltaPairs& to) {
    float between = 1.0f, all = 1.0f, behind = 1.0f;  // all: up to t; behind: behind it
    RL_UNROLL
    for (uint32_t r = 0; r < Shared::kRows; ++r) {
        const float decay = gates[r].decay;
        if (r - s - 1 < t - s) between *= decay;  // r is behind s, but not behind t
        // As few comparisons as will do: they would fill the scalar registers.
        (r <= t ? all : behind) *= decay;
    }
    const float gate = gates[t].gate, of_key = 1.0f / root_of(shared.key_squares[t] + args.eps),
                other = 1.0f / root_of(shared.key_squares[s] + args.eps),
                of_query = 1.0f / root_of((shared.query_squares[t] + args.eps) * float(args.key_dim));
    to.by_keys[t][s] = s < t ? shared.by_keys[t][s] * (gate * between * other * of_key) : 0.0f;
    to.by_queries[t][s] = s <= t ? shared.by_queries[t][s] * (between * other * of_query) : 0.0f;
    if (s != t) return;
    const uint32_t row = anew(t);
    to.seen_by[row] = gate * all * of_key;
    to.read_by[row] = all * of_query;
    to.left[row] = behind * of_key;
    to.gates[row] = gate;
    if (t == Shared::kRows - 1) to.decay[0] = all;
}

// The rows from `row` on, of all heads that share a head of keys.
template <typename Shared>
RL_DEVICE void pair_rows(const DeltaArgs& args, Shared& shared, uint32_t row, uint32_t key_head) {
    constexpr uint32_t kRows = Shared::kRows, kQuads = Shared::kQuads;
    const size_t all_keys = size_t(args.key_heads) * args.key_dim,
                 width = 2 * all_keys + size_t(args.heads) * args.value_dim;
    const bool whole = (args.key_dim | args.value_dim) % 4 == 0;
    const uint32_t shared_by = heads_of_key(args);
    sync_block();  // what was there before has been read
    static_assert(kRows * kQuads % kThreads == 0);
    RL_UNROLL_BY(2)
    for (uint32_t turn = 0; turn < kRows * kQuads / kThreads; ++turn) {
        const uint32_t n = turn * kThreads + thread_index();
        const float* q = args.qkv + (row + n / kQuads) * width + size_t(key_head) * args.key_dim;
        const uint32_t i = n % kQuads;
        if (whole && 4 * i < args.key_dim) {
            shared.queries[n] = load<Float4>(q, i);
            shared.keys[n] = load<Float4>(q + all_keys, i);
        } else {
            shared.queries[n] = quad_of(q, args.key_dim, i);
            shared.keys[n] = quad_of(q + all_keys, args.key_dim, i);
        }
    }
    sync_block();
    multiply_pairs(shared);
    DeltaPairs* const to = args.pairs + size_t(row / kRows) * args.heads;
    const auto head_of = [&](uint32_t n) {
        return args.in_turns ? n * args.key_heads + key_head : key_head * shared_by + n;
    };
    for (uint32_t first = 0; first < shared_by; first += Shared::kHeads) {
        const uint32_t heads = lesser(Shared::kHeads, shared_by - first);
        if (first > 0) sync_block();
        for (uint32_t i = thread_index(); i < heads * kRows; i += kThreads) {
            const uint32_t head = head_of(first + i / kRows);
            const size_t gate = size_t(row + i % kRows) * args.heads + head;
            shared.gates[i / kRows][i % kRows] =
                delta_gates(args.alpha[gate], args.beta[gate], args.a[head], args.dt[head]);
        }
        sync_block();
        for (uint32_t i = thread_index(); i < heads * kRows * kRows; i += kThreads) {
            const uint32_t n = i / (kRows * kRows);
            leave_pair(args, shared, shared.gates[n], i / kRows % kRows, i % kRows, to[head_of(first + n)]);
        }
    }
}

// A block per sequence, group of rows and head of keys.
template <typename Shared>
RL_DEVICE void pair_all(const DeltaArgs& args, Shared& shared) {
    constexpr uint32_t kRows = Shared::kRows;
    const uint32_t groups = (args.end_row - args.first_row) / kRows, units = groups * args.key_heads;
    for (uint32_t n = block_index().x; n < units * args.step->segments; n += grid_blocks()) {
        const DeltaSpan span = delta_span(args, args.states[n / units]);
        const uint32_t row = span.begin + n % units / args.key_heads * kRows;
        if (row + kRows <= span.end) pair_rows(args, shared, row, n % args.key_heads);
    }
}

}  // namespace redline::hip
