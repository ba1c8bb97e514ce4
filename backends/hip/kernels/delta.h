// The gated delta rule: eight rows of a sequence at a time, and what is left row after row.
#pragma once

#include "kernels/delta_pairs.h"

namespace redline::hip {

using args::kZeroState;

// How the gated delta rule is divided: kLanes lanes share four columns of a head's state, and each has four
// of every 4 * kLanes keys: at most kKeys.
template <uint32_t kMostKeys, uint32_t kSharing>
struct DeltaCut {
    static constexpr uint32_t kKeys = kMostKeys, kLanes = kWave < kSharing ? 1 : kSharing, kColumns = 4,
                              kBlock = kThreads / kLanes * kColumns;          // columns that a block has
    static constexpr uint32_t kRows = args::kDeltaRows;                       // at a time
    static constexpr uint32_t kWaveRows = (kRows + kWaves - 1) / kWaves;      // that a wave norms
    static constexpr uint32_t kLaneQuads = (kKeys / 4 + kWave - 1) / kWave;   // of such a row
    static constexpr uint32_t kOwnValues = kRows * kBlock / kThreads;         // that a thread brings
    static constexpr uint32_t kOwnGates = (kRows + kThreads - 1) / kThreads;  // likewise, of rows
    static constexpr uint32_t kPairQuads = sizeof(DeltaPairs) / 16,
                              kOwnPairs = (kPairQuads + kThreads - 1) / kThreads;  // likewise
    static constexpr uint32_t kSums = kRows * kColumns, kRowLanes = kLanes < kRows ? kLanes : kRows,
                              kOwnSums = kSums / kRowLanes;    // that a lane ends up with
    static constexpr uint32_t kOwnRows = kOwnSums / kColumns;  // that these are of
    static constexpr uint32_t kClusters = kThreads / kLanes;   // of lanes that share columns
};

// Queries and keys are unit vectors where rows go one by one, and as they came where kRows go at once.
template <typename Cut>
struct DeltaShared {
    Float4 queries[Cut::kRows * Cut::kKeys / 4], keys[Cut::kRows * Cut::kKeys / 4];
    Float4 values[Cut::kRows * Cut::kBlock / 4];
    Float4 factors[Cut::kRows];  // of rows one by one: decay, b, q k
    Float4 changes[Cut::kClusters * Cut::kRows];
    DeltaPairs pairs;
};

// The inputs of the next rows on their way: of a wave's rows queries and keys.
template <typename Cut>
struct DeltaInputs {
    Float4 q[Cut::kWaveRows][Cut::kLaneQuads], k[Cut::kWaveRows][Cut::kLaneQuads];
    float alpha[Cut::kOwnGates], beta[Cut::kOwnGates], a, dt;  // of rows one by one
    Float4 pairs[Cut::kOwnPairs];                              // of kRows at once
    float values[Cut::kOwnValues];

    // Beyond the last row the last: of those nothing is used.
    RL_DEVICE void fetch(const DeltaArgs& args, size_t row, uint32_t count, uint32_t head, uint32_t key_head,
                         uint32_t first) {
        const uint32_t wave = anew(wave_index()), lane = anew(lane_index()), thread = anew(thread_index());
        const size_t all_keys = size_t(args.key_heads) * args.key_dim,
                     width = 2 * all_keys + size_t(args.heads) * args.value_dim;
        const auto fetch_quads = [&](auto quad) {
            RL_UNROLL
            for (uint32_t n = 0; n < Cut::kWaveRows; ++n) {
                const size_t own = row + lesser(wave + n * kWaves, count - 1);
                const float* q_row = args.qkv + own * width + size_t(key_head) * args.key_dim;
                RL_UNROLL
                for (uint32_t i = 0; i < Cut::kLaneQuads; ++i) {
                    q[n][i] = quad(q_row, lane + i * kWave);
                    k[n][i] = quad(q_row + all_keys, lane + i * kWave);
                }
            }
        };
        if ((args.key_dim | args.value_dim) % 4 == 0)
            fetch_quads([&](const float* vector, uint32_t i) {
                const Float4 four = load<Float4>(vector, lesser(i, args.key_dim / 4 - 1));
                return 4 * i < args.key_dim ? four : Float4{};
            });
        else
            fetch_quads([&](const float* vector, uint32_t i) { return quad_of(vector, args.key_dim, i); });
        if (count == Cut::kRows) {
            const DeltaPairs* own = args.pairs + in_each_lane(row / Cut::kRows * args.heads + head);
            RL_UNROLL
            for (uint32_t n = 0; n < Cut::kOwnPairs; ++n)
                pairs[n] = load<Float4>(own, lesser(thread + n * kThreads, Cut::kPairQuads - 1));
        } else {
            RL_UNROLL
            for (uint32_t n = 0; n < Cut::kOwnGates; ++n) {
                const size_t gate = (row + lesser(thread + n * kThreads, count - 1)) * args.heads + head;
                alpha[n] = args.alpha[gate];
                beta[n] = args.beta[gate];
            }
            a = args.a[head];
            dt = args.dt[head];
        }
        const float* from = args.qkv + 2 * all_keys + size_t(head) * args.value_dim;
        RL_UNROLL
        for (uint32_t n = 0; n < Cut::kOwnValues; ++n) {
            const uint32_t i = thread + n * kThreads;
            const uint32_t column = lesser(first + i % Cut::kBlock, args.value_dim - 1);
            values[n] = from[(row + lesser(i / Cut::kBlock, count - 1)) * width + column];
        }
    }

    // Of kRows queries and keys as they came; of fewer as unit vectors, a row by a wave.
    RL_DEVICE void share(const DeltaArgs& args, uint32_t count, DeltaShared<Cut>& shared) const {
        sync_block();  // the rows before are done
        const uint32_t wave = anew(wave_index()), thread = anew(thread_index());
        RL_UNROLL
        for (uint32_t n = 0; n < Cut::kWaveRows; ++n) {
            const uint32_t t = wave + n * kWaves;
            if (count == Cut::kRows) {
                if (t < Cut::kRows) share_quads(n, t, 1.0f, 1.0f, shared);
            } else if (t < count) {
                share_row(args, n, t, shared);
            }
        }
        if (count == Cut::kRows) {
            RL_UNROLL
            for (uint32_t n = 0; n < Cut::kOwnPairs; ++n) {
                const uint32_t i = thread + n * kThreads;
                if (i < Cut::kPairQuads) reinterpret_cast<Float4*>(&shared.pairs)[i] = pairs[n];
            }
        } else {
            RL_UNROLL
            for (uint32_t n = 0; n < Cut::kOwnGates; ++n) {
                const uint32_t t = thread + n * kThreads;
                if (t >= count) continue;
                const DeltaGates gates = delta_gates(alpha[n], beta[n], a, dt);
                shared.factors[t].d[0] = gates.decay;
                shared.factors[t].d[1] = gates.gate;
            }
        }
        RL_UNROLL
        for (uint32_t n = 0; n < Cut::kOwnValues; ++n) {
            const uint32_t i = thread + n * kThreads;
            shared.values[i / 4].d[i % 4] = values[n];
        }
        sync_block();
    }

private:
    RL_DEVICE void share_row(const DeltaArgs& args, uint32_t n, uint32_t t, DeltaShared<Cut>& shared) const {
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
        share_quads(n, t, of_q, of_k, shared);
        if (lane_index() == 0) shared.factors[t].d[2] = both;
    }
    RL_DEVICE void share_quads(uint32_t n, uint32_t t, float of_q, float of_k,
                               DeltaShared<Cut>& shared) const {
        RL_UNROLL
        for (uint32_t i = 0; i < Cut::kLaneQuads; ++i) {
            const uint32_t quad = anew(lane_index()) + i * kWave;
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
    }
};

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
        const Float4* again = shared.keys + t * (Cut::kKeys / 4) + anew(lane);  // or all keys are kept
        const auto add = [](float a, float b) { return a + b; };
        const Float4 factors = shared.factors[t];
        float seen[Cut::kColumns] = {}, change[Cut::kColumns];
        RL_UNROLL
        for (uint32_t c = 0; c < Cut::kColumns; ++c) y[c] = 0.0f;
        RL_UNROLL
        for (uint32_t i = 0; i < kQuads * 4; ++i) {
            if (i % 4 == 0) keep_order();
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
            if (i % 4 == 0) keep_order();
            const float k = again[i / 4 * Cut::kLanes].d[i % 4];
            RL_UNROLL
            for (uint32_t c = 0; c < Cut::kColumns; ++c)
                d[i][c] = fused(k, change[c], factors.d[0] * d[i][c]);
        }
    }

    // kRows rows at once: what each takes from the state before them, and then what they change, in order.
    // put(row, column, value) is given what they read.
    template <typename Put>
    RL_DEVICE void run_all(DeltaShared<Cut>& shared, uint32_t first, Put put) {
        float change[kRows][kColumns], own[Cut::kSums];
        const uint32_t own_lane = anew(lane), own_column = anew(column);
        const uint32_t own_row = first_sum<Cut::kSums, 1, Cut::kRowLanes>() / kColumns;
        Float4* changes = shared.changes + anew(thread_index()) / Cut::kLanes * kRows;
        multiply(shared.keys, own_lane, own);
        // Without the changes of the rows between, a row by a lane.
        RL_UNROLL
        for (uint32_t n = 0; n < Cut::kOwnRows; ++n) {
            const uint32_t t = own_row + n;
            const Float4 v = shared.values[(t * Cut::kBlock + own_column - first) / 4];
            const float b = shared.pairs.gates[t], seen_by = shared.pairs.seen_by[t];
            Float4 apart;
            RL_UNROLL
            for (uint32_t c = 0; c < kColumns; ++c) apart.d[c] = b * v.d[c] - seen_by * own[n * kColumns + c];
            if (own_lane < Cut::kRowLanes) changes[t] = apart;
        }
        sync_wave();
        RL_UNROLL
        for (uint32_t t = 0; t < kRows; ++t) {
            keep_order();
            const Float4 apart = changes[t];
            const float* by = shared.pairs.by_keys[t];
            const Float4 lower = load<Float4>(by, 0), upper = t > 4 ? load<Float4>(by, 1) : Float4{};
            RL_UNROLL
            for (uint32_t c = 0; c < kColumns; ++c) {
                float x = apart.d[c];
                RL_UNROLL
                for (uint32_t s = 0; s < t; ++s)
                    x = fused(-(s < 4 ? lower : upper).d[s % 4], change[s][c], x);
                change[t][c] = x;
            }
        }
        multiply(shared.queries, anew(own_lane), own);
        RL_UNROLL
        for (uint32_t n = 0; n < Cut::kOwnRows; ++n) {
            const uint32_t t = own_row + n;
            const float* by = shared.pairs.by_queries[t];
            const Float4 lower = load<Float4>(by, 0), upper = load<Float4>(by, 1);
            RL_UNROLL
            for (uint32_t c = 0; c < kColumns; ++c) {
                float x = shared.pairs.read_by[t] * own[n * kColumns + c];
                RL_UNROLL
                for (uint32_t s = 0; s < kRows; ++s)
                    x = fused((s < 4 ? lower : upper).d[s % 4], change[s][c], x);
                if (own_lane < Cut::kRowLanes) put(t, own_column + c, x);
            }
        }
        RL_UNROLL
        for (uint32_t t = 0; t < kRows; ++t) {
            const float left = shared.pairs.left[t];
            RL_UNROLL
            for (uint32_t c = 0; c < kColumns; ++c) change[t][c] *= left;
        }
        take(shared.keys, anew(own_lane), shared.pairs.decay[0],
             change);  // or all keys are kept since they were read
    }

private:
    // What the rows' vectors see of the state: of the sums, by row, then column, a lane gets kOwnSums, from
    // first_sum() on.
    RL_DEVICE void multiply(const Float4* vectors, uint32_t own_lane, float (&sums)[Cut::kSums]) const {
        RL_UNROLL
        for (uint32_t n = 0; n < Cut::kSums; ++n) sums[n] = 0.0f;
        RL_UNROLL
        for (uint32_t i = 0; i < kQuads; ++i) RL_UNROLL
        for (uint32_t t = 0; t < kRows; ++t) {
            if (t % kAhead == 0) keep_order();
            const Float4 vector = vectors[t * (Cut::kKeys / 4) + i * Cut::kLanes + own_lane];
            RL_UNROLL
            for (uint32_t e = 0; e < 4; ++e) RL_UNROLL
            for (uint32_t c = 0; c < kColumns; ++c)
                sums[t * kColumns + c] = fused(vector.d[e], d[4 * i + e][c], sums[t * kColumns + c]);
        }
        const auto add = [](float a, float b) { return a + b; };
        spread_sums<Cut::kSums, 1, Cut::kRowLanes>(sums);
        RL_UNROLL
        for (uint32_t n = 0; n < Cut::kOwnSums; ++n)
            sums[n] = fold_lanes<Cut::kRowLanes, Cut::kLanes>(sums[n], add);
    }
    // The state behind the rows.
    RL_DEVICE void take(const Float4* keys, uint32_t own_lane, float decay,
                        const float (&change)[kRows][kColumns]) {
        RL_UNROLL
        for (uint32_t i = 0; i < kQuads; ++i) {
            RL_UNROLL
            for (uint32_t e = 0; e < 4; ++e) RL_UNROLL
            for (uint32_t c = 0; c < kColumns; ++c) d[4 * i + e][c] *= decay;
            RL_UNROLL
            for (uint32_t t = 0; t < kRows; ++t) {
                if (t % kAhead == 0) keep_order();
                const Float4 k = keys[t * (Cut::kKeys / 4) + i * Cut::kLanes + own_lane];
                RL_UNROLL
                for (uint32_t e = 0; e < 4; ++e) RL_UNROLL
                for (uint32_t c = 0; c < kColumns; ++c)
                    d[4 * i + e][c] = fused(k.d[e], change[t][c], d[4 * i + e][c]);
            }
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
    const DeltaSpan span = delta_span(args, segment);
    const uint32_t begin = span.begin, end = span.end;
    if (begin >= end) return;
    const size_t size = size_t(args.key_dim) * args.value_dim;
    const auto state = [&](uint32_t row) { return args.state + (size_t(row) * args.heads + head) * size; };
    const uint32_t key_head = args.in_turns ? head % args.key_heads : head / heads_of_key(args);
    DeltaInputs<Cut> inputs;
    // Rows whose states are kept go one by one, which fewer than kRows at a time do.
    const uint32_t most = state_behind(args.step, begin) == kZeroState ? Cut::kRows : Cut::kRows - 1;
    const auto fetch = [&](size_t row, uint32_t rows) {
        inputs.fetch(args, row, lesser(most, rows), head, key_head, first);
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
    for (uint32_t row = begin; row < end; row += most) {
        const uint32_t count = lesser(most, end - row);
        const size_t in_lanes = in_each_lane(row);
        inputs.share(args, count, shared);
        if (row + most < end) fetch(in_lanes + most, end - row - most);
        if (count == Cut::kRows) {
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
            const uint32_t kept = state_behind(args.step, uint32_t(in_lanes) + t);
            if (kept != kZeroState) own.store_to(state(kept), args);
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
