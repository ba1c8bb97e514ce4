// The gated delta rule: eight rows of a sequence at a time, and what is left row after row.
#pragma once

#include "kernels/args.h"
#include "kernels/reduce.h"
#include "kernels/scan.h"
#include "kernels/unit.h"

namespace redline::hip {

using args::DeltaArgs;
using args::kZeroState;
using args::SegmentState;

RL_DEVICE float sigmoid(float x) {
    return 1.0f / (1.0f + exp_of(-x));
}

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

// How the gated delta rule is divided: kLanes lanes share four columns of a head's state, and each has four
// of every 4 * kLanes keys: at most kKeys.
template <uint32_t kMostKeys, uint32_t kSharing>
struct DeltaCut {
    static constexpr uint32_t kKeys = kMostKeys, kLanes = kWave < kSharing ? 1 : kSharing, kColumns = 4,
                              kBlock = kThreads / kLanes * kColumns;         // columns that a block has
    static constexpr uint32_t kRows = 8;                                     // at a time
    static constexpr uint32_t kWaveRows = (kRows + kWaves - 1) / kWaves;     // that a wave norms
    static constexpr uint32_t kLaneQuads = (kKeys / 4 + kWave - 1) / kWave;  // of such a row
    static constexpr uint32_t kOwnValues = kRows * kBlock / kThreads;        // that a thread brings
    static constexpr uint32_t kSums = kRows * kColumns, kRowLanes = kLanes < kRows ? kLanes : kRows,
                              kOwnSums = kSums / kRowLanes;  // that a lane ends up with
};

// decays[t] is the product of those up to row t; left[s] that of those behind row s. Of row t and an earlier
// one, s, a product of key or query of t and key of s, times the decays between them: by_keys times the gate,
// by_queries up to s = t.
template <typename Cut>
struct DeltaShared {
    Float4 queries[Cut::kRows * Cut::kKeys / 4], keys[Cut::kRows * Cut::kKeys / 4];
    Float4 values[Cut::kRows * Cut::kBlock / 4];
    Float4 factors[Cut::kRows];  // decay, b, q k
    float by_keys[Cut::kRows][Cut::kRows], by_queries[Cut::kRows][Cut::kRows];
    float decays[Cut::kRows], left[Cut::kRows];
};

// The inputs of the next rows on their way: of a wave's rows queries and keys.
template <typename Cut>
struct DeltaInputs {
    Float4 q[Cut::kWaveRows][Cut::kLaneQuads], k[Cut::kWaveRows][Cut::kLaneQuads];
    float alpha[Cut::kWaveRows], beta[Cut::kWaveRows];
    float values[Cut::kOwnValues];

    // Beyond the last row the last: of those nothing is used.
    RL_DEVICE void fetch(const DeltaArgs& args, size_t row, uint32_t count, uint32_t head, uint32_t key_head,
                         uint32_t first) {
        const uint32_t wave = anew(wave_index()), lane = anew(lane_index()), thread = anew(thread_index());
        const size_t all_keys = size_t(args.key_heads) * args.key_dim,
                     width = 2 * all_keys + size_t(args.heads) * args.value_dim;
        const bool whole = (args.key_dim | args.value_dim) % 4 == 0;
        const auto quad = [&](const float* vector, uint32_t i) {
            if (whole && 4 * i < args.key_dim) return load<Float4>(vector, i);
            return whole ? Float4{} : quad_of(vector, args.key_dim, i);
        };
        RL_UNROLL
        for (uint32_t n = 0; n < Cut::kWaveRows; ++n) {
            const size_t own = row + lesser(wave + n * kWaves, count - 1);
            const float *q_row = args.qkv + own * width + size_t(key_head) * args.key_dim,
                        *k_row = q_row + all_keys;
            RL_UNROLL
            for (uint32_t i = 0; i < Cut::kLaneQuads; ++i) {
                q[n][i] = quad(q_row, lane + i * kWave);
                k[n][i] = quad(k_row, lane + i * kWave);
            }
            alpha[n] = args.alpha[own * args.heads + head];
            beta[n] = args.beta[own * args.heads + head];
        }
        const float* from = args.qkv + 2 * all_keys + size_t(head) * args.value_dim;
        RL_UNROLL
        for (uint32_t n = 0; n < Cut::kOwnValues; ++n) {
            const uint32_t i = thread + n * kThreads;
            const uint32_t column = lesser(first + i % Cut::kBlock, args.value_dim - 1);
            values[n] = from[(row + lesser(i / Cut::kBlock, count - 1)) * width + column];
        }
    }

    // Queries and keys as unit vectors, a row by a wave.
    RL_DEVICE void share(const DeltaArgs& args, uint32_t count, uint32_t head,
                         DeltaShared<Cut>& shared) const {
        sync_block();  // the rows before are done
        const uint32_t wave = anew(wave_index()), thread = anew(thread_index());
        RL_UNROLL
        for (uint32_t n = 0; n < Cut::kWaveRows; ++n) {
            const uint32_t t = wave + n * kWaves;
            if (t < count) share_row(args, head, n, t, shared);
        }
        RL_UNROLL
        for (uint32_t n = 0; n < Cut::kOwnValues; ++n) {
            const uint32_t i = thread + n * kThreads;
            shared.values[i / 4].d[i % 4] = values[n];
        }
        sync_block();
    }

private:
    RL_DEVICE void share_row(const DeltaArgs& args, uint32_t head, uint32_t n, uint32_t t,
                             DeltaShared<Cut>& shared) const {
        const uint32_t lane = anew(lane_index());
        float of_q = 0.0f, of_k = 0.0f, both = 0.0f;
        RL_UNROLL
        for (uint32_t i = 0; i < Cut::kLaneQuads; ++i) RL_UNROLL
        for (uint32_t e = 0; e < 4; ++e) {
            of_q = fused(q[n][i].d[e], q[n][i].d[e], of_q);
            of_k = fused(k[n][i].d[e], k[n][i].d[e], of_k);
            both = fused(q[n][i].d[e], k[n][i].d[e], both);
        }
        of_q = 1.0f / root_of((wave_sum(of_q) + args.eps) * float(args.key_dim));
        of_k = 1.0f / root_of(wave_sum(of_k) + args.eps);
        both = wave_sum(both) * of_q * of_k;
        RL_UNROLL
        for (uint32_t i = 0; i < Cut::kLaneQuads; ++i) {
            const uint32_t quad = lane + i * kWave;
            if (quad >= Cut::kKeys / 4) continue;
            Float4 one, other;
            RL_UNROLL
            for (uint32_t e = 0; e < 4; ++e) {
                one.d[e] = q[n][i].d[e] * of_q;
                other.d[e] = k[n][i].d[e] * of_k;
            }
            shared.queries[t * (Cut::kKeys / 4) + quad] = one;
            shared.keys[t * (Cut::kKeys / 4) + quad] = other;
        }
        const float x = alpha[n] + args.dt[head];
        const float decay = exp_of(args.a[head] * (x > 20.0f ? x : log_of(1.0f + exp_of(x))));
        if (lane == 0) shared.factors[t] = {{decay, sigmoid(beta[n]), both, 0.0f}};
    }
};

// What of each other the rows see, by pairs of them.
template <typename Cut>
RL_DEVICE void share_pairs(DeltaShared<Cut>& shared) {
    constexpr uint32_t kPairs = Cut::kRows * Cut::kRows, kQuads = Cut::kKeys / 4;
    constexpr uint32_t kParts = kThreads < kPairs ? 1 : kThreads / kPairs;  // lanes of a pair
    const uint32_t thread = anew(thread_index()), part = thread % kParts;
    for (uint32_t pair = thread / kParts; pair < kPairs; pair += kThreads / kParts) {
        const uint32_t t = pair / Cut::kRows, s = pair % Cut::kRows;
        float of_k = 0.0f, of_q = 0.0f;
        for (uint32_t i = part; i < kQuads; i += kParts) {
            // Pairs begin apart, since all rows do in the same bank.
            const uint32_t at = (i + s * kParts) % kQuads;
            const Float4 k = shared.keys[t * kQuads + at], q = shared.queries[t * kQuads + at],
                         other = shared.keys[s * kQuads + at];
            RL_UNROLL
            for (uint32_t e = 0; e < 4; ++e) {
                of_k = fused(k.d[e], other.d[e], of_k);
                of_q = fused(q.d[e], other.d[e], of_q);
            }
        }
        const auto add = [](float a, float b) { return a + b; };
        of_k = fold_lanes<1, kParts>(of_k, add);
        of_q = fold_lanes<1, kParts>(of_q, add);
        float between = 1.0f, behind = 1.0f, all = 1.0f;
        RL_UNROLL
        for (uint32_t r = 0; r < Cut::kRows; ++r) {
            const float decay = shared.factors[r].d[0];
            if (r > s && r <= t) between *= decay;
            if (r > s) behind *= decay;
            if (r <= t) all *= decay;
        }
        shared.by_keys[t][s] = s < t ? shared.factors[t].d[1] * between * of_k : 0.0f;
        shared.by_queries[t][s] = s <= t ? between * of_q : 0.0f;
        if (t == 0) shared.left[s] = behind;
        if (s == 0) shared.decays[t] = all;
    }
    sync_block();
}

// What a thread has of a state: of its keys the elements of four columns.
template <typename Cut>
struct DeltaColumns {
    static constexpr uint32_t kQuads = Cut::kKeys / (4 * Cut::kLanes), kRows = Cut::kRows,
                              kColumns = Cut::kColumns, kAhead = 2;  // rows that are read at a time
    float d[kQuads * 4][kColumns];
    uint32_t lane, column;

    RL_DEVICE static uint32_t key(uint32_t i, uint32_t lane) {
        return (i / 4 * Cut::kLanes + lane) * 4 + i % 4;
    }

    // Beyond its end the state's last elements: they are multiplied by zeros, or change what is not kept.
    RL_DEVICE void load_from(const float* state, const DeltaArgs& args) {
        const bool whole = args.value_dim % 4 == 0;
        const uint32_t last = args.value_dim - 1, first = whole ? lesser(column, last - 3) : column;
        RL_UNROLL
        for (uint32_t i = 0; i < kQuads * 4; ++i) {
            const uint32_t row = lesser(key(i, lane), args.key_dim - 1) * args.value_dim;
            const Float4 four =
                whole ? load<Float4>(state, (row + first) / 4)
                      : Float4{{state[row + lesser(first, last)], state[row + lesser(first + 1, last)],
                                state[row + lesser(first + 2, last)], state[row + lesser(first + 3, last)]}};
            RL_UNROLL
            for (uint32_t c = 0; c < Cut::kColumns; ++c) d[i][c] = four.d[c];
        }
    }
    RL_DEVICE void store_to(float* state, const DeltaArgs& args) const {
        // Or what a comparison says while the state is loaded is kept in scalar registers.
        const uint32_t own = uint32_t(in_each_lane(lane));
        if (column >= args.value_dim) return;
        RL_UNROLL
        for (uint32_t i = 0; i < kQuads * 4; ++i) {
            if (key(i, own) >= args.key_dim) continue;
            float* row = state + (key(i, own) * args.value_dim + column);
            if (args.value_dim % 4 == 0) {
                *reinterpret_cast<Float4*>(row) = {{d[i][0], d[i][1], d[i][2], d[i][3]}};
                continue;
            }
            RL_UNROLL
            for (uint32_t c = 0; c < Cut::kColumns; ++c)
                if (column + c < args.value_dim) row[c] = d[i][c];
        }
    }

    // One row: y becomes what it reads.
    RL_DEVICE void run(const DeltaShared<Cut>& shared, uint32_t t, const Float4& v, float* y) {
        const Float4 *keys = shared.keys + t * (Cut::kKeys / 4) + lane,
                     *queries = shared.queries + t * (Cut::kKeys / 4) + lane;
        const auto add = [](float a, float b) { return a + b; };
        const Float4 factors = shared.factors[t];
        float seen[Cut::kColumns] = {}, change[Cut::kColumns];
        RL_UNROLL
        for (uint32_t c = 0; c < Cut::kColumns; ++c) y[c] = 0.0f;
        RL_UNROLL
        for (uint32_t i = 0; i < kQuads * 4; ++i) {
            const float k = keys[i / 4 * Cut::kLanes].d[i % 4], q = queries[i / 4 * Cut::kLanes].d[i % 4];
            RL_UNROLL
            for (uint32_t c = 0; c < Cut::kColumns; ++c) {
                seen[c] = fused(k, d[i][c], seen[c]);
                y[c] = fused(q, d[i][c], y[c]);
            }
        }
        RL_UNROLL
        for (uint32_t c = 0; c < Cut::kColumns; ++c) {
            change[c] = factors.d[1] * (v.d[c] - factors.d[0] * fold_lanes<1, Cut::kLanes>(seen[c], add));
            y[c] = fused(factors.d[2], change[c], factors.d[0] * fold_lanes<1, Cut::kLanes>(y[c], add));
        }
        RL_UNROLL
        for (uint32_t i = 0; i < kQuads * 4; ++i) {
            const float k = keys[i / 4 * Cut::kLanes].d[i % 4];
            RL_UNROLL
            for (uint32_t c = 0; c < Cut::kColumns; ++c)
                d[i][c] = fused(k, change[c], factors.d[0] * d[i][c]);
        }
    }

    // kRows rows at once: what each takes from the state before them, and then what they change, in order.
    // put(row, column, value) is given what they read.
    template <typename Put>
    RL_DEVICE void run_all(const DeltaShared<Cut>& shared, uint32_t first, Put put) {
        // Of what is read, by row, then column, a lane gets kOwnSums sums, from first_sum() on.
        float change[kRows][kColumns] = {}, own[Cut::kSums];
        const uint32_t own_lane = anew(lane), own_column = anew(column);
        RL_UNROLL
        for (uint32_t n = 0; n < Cut::kSums; ++n) own[n] = 0.0f;
        RL_UNROLL
        for (uint32_t i = 0; i < kQuads; ++i) RL_UNROLL
        for (uint32_t t = 0; t < kRows; ++t) {
            if (t % kAhead == 0) keep_order();
            const uint32_t at = t * (Cut::kKeys / 4) + i * Cut::kLanes + own_lane;
            const Float4 k = shared.keys[at], q = shared.queries[at];
            RL_UNROLL
            for (uint32_t e = 0; e < 4; ++e) RL_UNROLL
            for (uint32_t c = 0; c < kColumns; ++c) {
                change[t][c] = fused(k.d[e], d[4 * i + e][c], change[t][c]);
                own[t * kColumns + c] = fused(q.d[e], d[4 * i + e][c], own[t * kColumns + c]);
            }
        }
        const auto add = [](float a, float b) { return a + b; };
        spread_sums<Cut::kSums, 1, Cut::kRowLanes>(own);
        RL_UNROLL
        for (uint32_t n = 0; n < Cut::kOwnSums; ++n)
            own[n] = fold_lanes<Cut::kRowLanes, Cut::kLanes>(own[n], add);
        RL_UNROLL
        for (uint32_t t = 0; t < kRows; ++t) {
            keep_order();
            const Float4 v = shared.values[(t * Cut::kBlock + own_column - first) / 4];
            const float b = shared.factors[t].d[1], decay = shared.decays[t];
            RL_UNROLL
            for (uint32_t c = 0; c < kColumns; ++c) {
                float x = b * (v.d[c] - decay * fold_lanes<1, Cut::kLanes>(change[t][c], add));
                RL_UNROLL
                for (uint32_t s = 0; s < t; ++s) x = fused(-shared.by_keys[t][s], change[s][c], x);
                change[t][c] = x;
            }
        }
        read_changes(shared, change, own);
        const uint32_t row = first_sum<Cut::kSums, 1, Cut::kRowLanes>() / kColumns;
        RL_UNROLL
        for (uint32_t n = 0; n < Cut::kOwnSums; ++n)
            if (own_lane < Cut::kRowLanes) put(row + n / kColumns, own_column + n % kColumns, own[n]);
        RL_UNROLL
        for (uint32_t t = 0; t < kRows; ++t) RL_UNROLL
        for (uint32_t c = 0; c < kColumns; ++c) change[t][c] *= shared.left[t];
        const uint32_t again = anew(own_lane);  // or all keys are kept since they were read
        const float decay = shared.decays[kRows - 1];
        RL_UNROLL
        for (uint32_t i = 0; i < kQuads; ++i) {
            RL_UNROLL
            for (uint32_t e = 0; e < 4; ++e) RL_UNROLL
            for (uint32_t c = 0; c < kColumns; ++c) d[4 * i + e][c] *= decay;
            RL_UNROLL
            for (uint32_t t = 0; t < kRows; ++t) {
                if (t % kAhead == 0) keep_order();
                const Float4 k = shared.keys[t * (Cut::kKeys / 4) + i * Cut::kLanes + again];
                RL_UNROLL
                for (uint32_t e = 0; e < 4; ++e) RL_UNROLL
                for (uint32_t c = 0; c < kColumns; ++c)
                    d[4 * i + e][c] = fused(k.d[e], change[t][c], d[4 * i + e][c]);
            }
        }
    }

private:
    // To what a lane's rows read of the state before them what they read of changes.
    RL_DEVICE void read_changes(const DeltaShared<Cut>& shared, const float (&change)[kRows][kColumns],
                                float (&own)[Cut::kSums]) const {
        const uint32_t row = first_sum<Cut::kSums, 1, Cut::kRowLanes>() / kColumns;
        RL_UNROLL
        for (uint32_t n = 0; n < Cut::kOwnSums; ++n) {
            const uint32_t t = row + n / kColumns;
            float x = shared.decays[t] * own[n];
            RL_UNROLL
            for (uint32_t s = 0; s < kRows; ++s)
                x = fused(shared.by_queries[t][s], change[s][n % kColumns], x);
            own[n] = x;
        }
    }
};

// A block per sequence, head and block of the state's columns, which stays in registers.
//   seen = k S, read = q S, change = b (v - decay seen), y = decay read + (q k) change, S = decay S + k
//   change
// Of several rows at once (arXiv 2412.06464, section 3.3): seen and read are products with the state before
// them, times the decays since, and with the changes of the rows between. Sums in f32: within a lane in
// order, then across lanes.
template <typename Cut>
RL_DEVICE void delta_head(const DeltaArgs& args, DeltaShared<Cut>& shared, const SegmentState& segment,
                          uint32_t head, uint32_t first) {
    const uint32_t begin = segment.first_row < args.first_row ? args.first_row : segment.first_row,
                   end = lesser(segment.first_row + segment.rows, args.end_row);
    if (begin >= end) return;
    const size_t size = size_t(args.key_dim) * args.value_dim;
    const auto state = [&](uint32_t row) { return args.state + (size_t(row) * args.heads + head) * size; };
    const uint32_t key_head = args.in_turns ? head % args.key_heads : head / (args.heads / args.key_heads);
    DeltaInputs<Cut> inputs;
    const auto fetch = [&](size_t row, uint32_t rows) {
        inputs.fetch(args, row, lesser(Cut::kRows, rows), head, key_head, first);
    };
    fetch(begin, end - begin);
    DeltaColumns<Cut> own = {};
    own.lane = thread_index() % Cut::kLanes;
    own.column = first + thread_index() / Cut::kLanes * Cut::kColumns;
    // The rows before these of the same sequence have left its state.
    const uint32_t from = begin == segment.first_row ? segment.from : segment.to;
    if (from != kZeroState) own.load_from(state(from), args);
    const auto put = [&](size_t row, uint32_t column, float value) {
        if (column < args.value_dim) args.y[(row * args.heads + head) * args.value_dim + column] = value;
    };
    for (uint32_t row = begin; row < end; row += Cut::kRows) {
        const uint32_t count = lesser(Cut::kRows, end - row);
        const size_t in_lanes = in_each_lane(row);
        inputs.share(args, count, head, shared);
        if (row + Cut::kRows < end) fetch(in_lanes + Cut::kRows, end - row - Cut::kRows);
        if (count == Cut::kRows) {
            share_pairs(shared);
            own.run_all(shared, first,
                        [&](uint32_t t, uint32_t column, float value) { put(in_lanes + t, column, value); });
            continue;
        }
        for (uint32_t t = 0; t < count; ++t) {
            float y[Cut::kColumns];
            own.run(shared, t, shared.values[(t * Cut::kBlock + own.column - first) / 4], y);
            RL_UNROLL
            for (uint32_t c = 0; c < Cut::kColumns; ++c)
                if (own.lane == c % Cut::kLanes) put(in_lanes + t, own.column + c, y[c]);
        }
    }
    own.store_to(state(segment.to), args);
}

template <typename Cut>
RL_DEVICE void delta_all(const DeltaArgs& args, DeltaShared<Cut>& shared) {
    const uint32_t blocks = (args.value_dim + Cut::kBlock - 1) / Cut::kBlock, units = args.heads * blocks;
    for (uint32_t n = block_index().x; n < units * args.step->segments; n += grid_blocks())
        delta_head(args, shared, args.states[n / units], uint32_t(in_each_lane(n / blocks % args.heads)),
                   n % blocks * Cut::kBlock);
}

}  // namespace redline::hip
