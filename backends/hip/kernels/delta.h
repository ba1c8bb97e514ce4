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
                              kBlock = kThreads / kLanes * kColumns;          // columns that a block has
    static constexpr uint32_t kRows = 8;                                      // at a time
    static constexpr uint32_t kWaveRows = (kRows + kWaves - 1) / kWaves;      // that a wave norms
    static constexpr uint32_t kLaneQuads = (kKeys / 4 + kWave - 1) / kWave;   // of such a row
    static constexpr uint32_t kOwnValues = kRows * kBlock / kThreads;         // that a thread brings
    static constexpr uint32_t kOwnGates = (kRows + kThreads - 1) / kThreads;  // likewise, of rows
    static constexpr uint32_t kSums = kRows * kColumns, kRowLanes = kLanes < kRows ? kLanes : kRows,
                              kOwnSums = kSums / kRowLanes;    // that a lane ends up with
    static constexpr uint32_t kOwnRows = kOwnSums / kColumns;  // that these are of
    static constexpr uint32_t kClusters = kThreads / kLanes;   // of lanes that share columns
};

// Queries and keys are unit vectors where rows go one by one. Where kRows go at once they are as they came,
// and what would make unit vectors of them is a factor of all that comes of them:
//   key_squares, query_squares   of a row's vectors with themselves
//   seen_by, read_by             the product of decays up to a row, times its gate and its key's factor, and
//                                times its query's factor
//   left                         what a row's change counts behind all rows
//   by_keys, by_queries          [t][s]: the product of t's key, or query, and s's key, times both factors,
//                                the decays between and, of keys, t's gate; 0 for s behind t, of keys at t
template <typename Cut>
struct DeltaShared {
    Float4 queries[Cut::kRows * Cut::kKeys / 4], keys[Cut::kRows * Cut::kKeys / 4];
    Float4 values[Cut::kRows * Cut::kBlock / 4];
    Float4 factors[Cut::kRows];  // decay, b, q k
    Float4 changes[Cut::kClusters * Cut::kRows];
    Float4 by_keys[Cut::kRows][Cut::kRows / 4], by_queries[Cut::kRows][Cut::kRows / 4];
    float key_squares[Cut::kRows], query_squares[Cut::kRows];
    float seen_by[Cut::kRows], read_by[Cut::kRows], left[Cut::kRows];
};

// The inputs of the next rows on their way: of a wave's rows queries and keys.
template <typename Cut>
struct DeltaInputs {
    Float4 q[Cut::kWaveRows][Cut::kLaneQuads], k[Cut::kWaveRows][Cut::kLaneQuads];
    float alpha[Cut::kOwnGates], beta[Cut::kOwnGates], a, dt;
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
        RL_UNROLL
        for (uint32_t n = 0; n < Cut::kOwnGates; ++n) {
            const size_t gate = (row + lesser(thread + n * kThreads, count - 1)) * args.heads + head;
            alpha[n] = args.alpha[gate];
            beta[n] = args.beta[gate];
        }
        a = args.a[head];
        dt = args.dt[head];
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
        RL_UNROLL
        for (uint32_t n = 0; n < Cut::kOwnGates; ++n) {
            const uint32_t t = thread + n * kThreads;
            if (t >= count) continue;
            const float x = alpha[n] + dt;
            shared.factors[t].d[0] = exp_of(a * (x > 20.0f ? x : log_of(1.0f + exp_of(x))));
            shared.factors[t].d[1] = sigmoid(beta[n]);
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

// The products of a row's key and query with four rows' keys, and the query's square, by the lanes of a
// cluster.
template <typename Cut>
RL_DEVICE void multiply_pairs(DeltaShared<Cut>& shared) {
    constexpr uint32_t kQuads = Cut::kKeys / 4, kFours = Cut::kRows * Cut::kRows / 4,
                       kTurns = (kFours + Cut::kClusters - 1) / Cut::kClusters;
    const uint32_t thread = anew(thread_index()), lane = thread % Cut::kLanes;
    const auto add = [](float a, float b) { return a + b; };
    RL_UNROLL_BY(2)
    for (uint32_t n = 0; n < kTurns; ++n) {
        const uint32_t four = lesser(n * Cut::kClusters + thread / Cut::kLanes, kFours - 1),
                       t = four * 4 / Cut::kRows, before = four * 4 % Cut::kRows;
        float sums[8] = {}, square = 0.0f;  // with the key, then with the query
        RL_UNROLL
        for (uint32_t i = 0; i < kQuads / Cut::kLanes; ++i) {
            keep_order();
            const uint32_t at = i * Cut::kLanes + lane;
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
        spread_sums<8, 1, Cut::kRowLanes>(sums);
        square = fold_lanes<1, Cut::kLanes>(square, add);
        if (lane == 0) shared.query_squares[t] = square;
        RL_UNROLL
        for (uint32_t i = 0; i < 8 / Cut::kRowLanes; ++i) {
            const float sum = fold_lanes<Cut::kRowLanes, Cut::kLanes>(sums[i], add);
            const uint32_t which = first_sum<8, 1, Cut::kRowLanes>() + i, s = before + which % 4;
            if (lane >= Cut::kRowLanes) continue;
            (which >= 4 ? shared.by_queries : shared.by_keys)[t][s / 4].d[s % 4] = sum;
            if (which < 4 && s == t) shared.key_squares[t] = sum;
        }
    }
}

// What of each other the rows see, by pairs of them.
template <typename Cut>
RL_DEVICE void share_pairs(const DeltaArgs& args, DeltaShared<Cut>& shared) {
    multiply_pairs(shared);
    sync_block();
    constexpr uint32_t kPairs = Cut::kRows * Cut::kRows;
    for (uint32_t pair = anew(thread_index()); pair < kPairs; pair += kThreads) {
        const uint32_t t = pair / Cut::kRows, s = pair % Cut::kRows;
        float between = 1.0f, all = 1.0f, behind = 1.0f;  // all: up to t; behind: behind it
        RL_UNROLL
        for (uint32_t r = 0; r < Cut::kRows; ++r) {
            const float decay = shared.factors[r].d[0];
            if (r - s - 1 < t - s) between *= decay;  // r is behind s, but not behind t
            // As few comparisons as will do: they would fill the scalar registers.
            (r <= t ? all : behind) *= decay;
        }
        const float gate = shared.factors[t].d[1], of_key = 1.0f / root_of(shared.key_squares[t] + args.eps),
                    other = 1.0f / root_of(shared.key_squares[s] + args.eps),
                    of_query = 1.0f / root_of((shared.query_squares[t] + args.eps) * float(args.key_dim));
        float &by_key = shared.by_keys[t][s / 4].d[s % 4], &by_query = shared.by_queries[t][s / 4].d[s % 4];
        by_key = s < t ? by_key * (gate * between * other * of_key) : 0.0f;
        by_query = s <= t ? by_query * (between * other * of_query) : 0.0f;
        if (s != t) continue;
        shared.seen_by[t] = gate * all * of_key;
        shared.read_by[t] = all * of_query;
        shared.left[t] = behind * of_key;
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
            const float b = shared.factors[t].d[1], seen_by = shared.seen_by[t];
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
            const Float4 *by = shared.by_keys[t], lower = by[0], upper = t > 4 ? by[1] : Float4{};
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
            const Float4 *by = shared.by_queries[t], lower = by[0], upper = by[1];
            RL_UNROLL
            for (uint32_t c = 0; c < kColumns; ++c) {
                float x = shared.read_by[t] * own[n * kColumns + c];
                RL_UNROLL
                for (uint32_t s = 0; s < kRows; ++s)
                    x = fused((s < 4 ? lower : upper).d[s % 4], change[s][c], x);
                if (own_lane < Cut::kRowLanes) put(t, own_column + c, x);
            }
        }
        float decay = 1.0f;
        RL_UNROLL
        for (uint32_t t = 0; t < kRows; ++t) {
            decay *= shared.factors[t].d[0];
            const float left = shared.left[t];
            RL_UNROLL
            for (uint32_t c = 0; c < kColumns; ++c) change[t][c] *= left;
        }
        take(shared.keys, anew(own_lane), decay, change);  // or all keys are kept since they were read
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
        inputs.share(args, count, shared);
        if (row + Cut::kRows < end) fetch(in_lanes + Cut::kRows, end - row - Cut::kRows);
        if (count == Cut::kRows) {
            share_pairs(args, shared);
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
