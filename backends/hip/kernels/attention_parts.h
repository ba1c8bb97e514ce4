// What kernels of attention share: which queries and keys a block works at, the parts that a softmax is made
// of, and how the results of several blocks come together.
#pragma once

#include "kernels/args.h"
#include "kernels/reduce.h"

namespace redline::hip {

// Queries (row, head) that share a kv head, one after the other: x of the grid over splits of the keys, y
// over groups of queries, z over kv heads. Where rows may be of several sequences, a group is of one row.
struct Queries {
    uint32_t group;  // heads that share a kv head
    uint32_t first;  // of this block
    uint32_t kv_head;
    uint32_t first_row;
    RL_DEVICE uint32_t row(uint32_t i) const { return first_row + (first + i) / group; }
    RL_DEVICE uint32_t head(uint32_t i) const { return kv_head * group + (first + i) % group; }
};
RL_DEVICE Queries block_queries(const args::AttentionArgs& a, uint32_t count) {
    const uint32_t group = a.heads / a.cache.kv_heads, y = block_index().y, kv_head = block_index().z;
    if (a.row_groups == 0) return {group, y * count, kv_head, a.first_row};
    return {group, y % a.row_groups * count, kv_head, a.first_row + y / a.row_groups};
}

// How many rows a step has and where its first is, in one load.
struct StepRows {
    uint32_t rows, position;
};
RL_DEVICE StepRows step_rows(const args::Step* step) {
    static_assert(offsetof(args::Step, position) == 4);
    const Words2 both = load<Words2>(step, 0);
    return {both.d[0], both.d[1]};
}

// For the block's sequence: rows end behind the block's, where they may be of several sequences.
RL_DEVICE StepRows block_rows(const args::AttentionArgs& a, const Queries& which) {
    StepRows all = step_rows(a.step);
    if (a.lone) all.rows = a.step->lone_rows;
    if (a.row_groups == 0 || which.first_row >= all.rows) return all;
    return {which.first_row + 1, a.cache.places[which.first_row].position - which.first_row};
}

// Where what a query sees begins, whose own key is the last before `end`.
RL_DEVICE uint32_t first_seen(const args::AttentionArgs& a, uint32_t end) {
    if (a.window == 0 || end <= a.window) return 0;
    return a.chunks != 0 ? (end - 1) / a.window * a.window : end - a.window;
}

// Keys [from, to) of a block, and how many splits have any.
struct KeyRange {
    uint32_t from, to;
    uint32_t used;
};
// Keys are split by how many there are now. Less than `least` are not worth a block, and two such shares not
// worth bringing together. Shares are multiples of `unit`, and begin at such.
RL_DEVICE KeyRange block_keys(const args::AttentionArgs& a, const Queries& which, uint32_t count,
                              uint32_t rows, uint32_t position, uint32_t least, uint32_t unit) {
    const uint32_t last_row = lesser(which.row(count - 1), rows - 1), end = position + last_row + 1;
    const uint32_t begin = first_seen(a, position + which.row(0) + 1) / unit * unit;
    const uint32_t count_all = end - begin, even = (count_all + a.splits - 1) / a.splits;
    const uint32_t enough = count_all <= 2 * least ? count_all : even > least ? even : least;
    const uint32_t share = (enough + unit - 1) / unit * unit;
    const uint32_t from = lesser(begin + block_index().x * share, end);
    return {from, lesser(from + share, end), (count_all + share - 1) / share};
}

// The same for a row that sees `all` keys, numbered from 0 on.
RL_DEVICE KeyRange split_of(uint32_t all, uint32_t splits, uint32_t least, uint32_t unit) {
    const uint32_t even = (all + splits - 1) / splits;
    const uint32_t enough = all <= 2 * least ? all : even > least ? even : least;
    const uint32_t share = (enough + unit - 1) / unit * unit, from = lesser(block_index().x * share, all);
    return {from, lesser(from + share, all), (all + share - 1) / share};
}

// Keys [begin, end) that a query sees.
struct Seen {
    uint32_t begin, end;
};
RL_DEVICE Seen keys_seen(const args::AttentionArgs& a, uint32_t row, uint32_t rows, uint32_t position) {
    const uint32_t end = position + row + 1;
    return {first_seen(a, end), row < rows ? end : 0};
}

RL_DEVICE float capped(float score, float cap) {
    const float x = score / cap, e = exp_of(-2.0f * __builtin_fabsf(x)), t = (1.0f - e) / (1.0f + e);
    return cap * (x < 0.0f ? -t : t);
}

// Nothing seen yet: infinity minus infinity must not become NaN, a NaN score must stay one.
RL_DEVICE float exp_below(float x, float top) {
    return x == -kInfinity ? 0.0f : exp_of(x - top);
}

// Each part of the keys has a maximum and a sum of weights per query; by `factors` parts are added up.
template <uint32_t kQueries, uint32_t kMostParts>
struct SoftmaxParts {
    float tops[kMostParts * kQueries];
    float totals[kMostParts * kQueries];
    float factors[kMostParts * kQueries];

    RL_DEVICE float top(uint32_t query, uint32_t parts) const {
        float most = -kInfinity;
        RL_UNROLL_BY(4)
        for (uint32_t p = 0; p < parts; ++p) most = larger(tops[p * kQueries + query], most);
        return most;
    }
    RL_DEVICE float total(uint32_t query, uint32_t parts) const {
        float sum = 0.0f;
        RL_UNROLL_BY(4)
        for (uint32_t p = 0; p < parts; ++p)
            sum = fused(factors[p * kQueries + query], totals[p * kQueries + query], sum);
        return sum;
    }
    // Maxima and totals are written; afterwards all threads see factors.
    RL_DEVICE void weigh(uint32_t parts, uint32_t threads) {
        sync_block();
        RL_FEW_TURNS
        for (uint32_t i = thread_index(); i < parts * kQueries; i += threads)
            factors[i] = exp_below(tops[i], top(i % kQueries, parts));
        sync_block();
    }
};

// What sums of weighted values are multiplied with to be the result, given their maximum and total.
RL_DEVICE float result_factor(const args::AttentionArgs& a, uint32_t head, float top, float total) {
    if (!a.sinks) return 1.0f / total;
    const float sink = a.sinks[head], most = larger(top, sink), down = exp_below(top, most);
    return down / fused(total, down, exp_of(sink - most));
}

// The weighted values of a split, whole fours; behind those of all splits their maxima and totals.
RL_DEVICE uint32_t partial_stride(const args::AttentionArgs& a) {
    return (a.cache.head_dim + 3) / 4 * 4;
}
RL_DEVICE float* partial_values(const args::AttentionArgs& a, size_t query, uint32_t split) {
    return a.partials + (query * a.splits + split) * partial_stride(a);
}
RL_DEVICE float* partial_stats(const args::AttentionArgs& a, size_t query, uint32_t split) {
    const size_t all = size_t(a.rows) * a.heads * a.splits * partial_stride(a);
    return a.partials + all + (query * a.splits + split) * 2;
}

// True in the block that is the last of `used` to come here: it sees what the others wrote to `partials`.
RL_DEVICE bool is_last_split(const args::AttentionArgs& a, uint32_t used, uint32_t& shared_flag) {
    uint32_t* counter = a.counters + block_index().y * a.cache.kv_heads + block_index().z;
    return is_last_block(counter, used, shared_flag);
}

// Four of a query's dimensions, added up over every step-th split from the first.
template <uint32_t kQueries, uint32_t kMostParts>
RL_DEVICE Float4 sum_splits(const args::AttentionArgs& a, const SoftmaxParts<kQueries, kMostParts>& parts,
                            uint32_t i, const float* values, uint32_t first, uint32_t step, uint32_t used) {
    constexpr uint32_t kAtOnce = 8;  // loads on their way, without branches: beyond the end of the last split
    Float4 sums = {};
    for (uint32_t s = first; s < used; s += kAtOnce * step) {
        Float4 fours[kAtOnce];
        RL_UNROLL
        for (uint32_t n = 0; n < kAtOnce; ++n)
            fours[n] = load<Float4>(values + size_t(lesser(s + n * step, used - 1)) * partial_stride(a), 0);
        RL_UNROLL
        for (uint32_t n = 0; n < kAtOnce; ++n) {
            const uint32_t split = s + n * step;
            const float own = parts.factors[lesser(split, used - 1) * kQueries + i];
            const float factor = split < used ? own : 0.0f;
            RL_UNROLL
            for (uint32_t e = 0; e < 4; ++e) sums.d[e] = fused(factor, fours[n].d[e], sums.d[e]);
        }
    }
    return sums;
}

// Adds up what the splits of a block's queries left in `partials`, four dimensions of at most kDims per
// thread. Where kDims leave threads to spare, several take turns at the splits; they meet in `room`, which
// has four floats for each. Every query's dimensions go to `results` as well, if there is one.
template <uint32_t kDims, uint32_t kBlockThreads, uint32_t kQueries, uint32_t kMostParts>
RL_DEVICE void merge_splits(const args::AttentionArgs& a, const Queries& which, uint32_t rows, uint32_t used,
                            SoftmaxParts<kQueries, kMostParts>& parts, [[maybe_unused]] Float4* room,
                            float* results) {
    constexpr uint32_t kMostFours = kQueries * (kDims / 4);
    const uint32_t dims = a.cache.head_dim, fours = partial_stride(a) / 4, all = kQueries * fours;
    const auto query = [&](uint32_t i) {
        return size_t(lesser(which.row(i), rows - 1)) * a.heads + which.head(i);
    };
    RL_FEW_TURNS
    for (uint32_t t = thread_index(); t < used * kQueries; t += kBlockThreads) {
        const float* stats = partial_stats(a, query(t % kQueries), t / kQueries);
        parts.tops[t] = stats[0];
        parts.totals[t] = stats[1];
    }
    parts.weigh(used, kBlockThreads);
    const auto sum = [&](uint32_t t, uint32_t first, uint32_t turns) {
        const uint32_t i = t / fours;
        return sum_splits(a, parts, i, partial_values(a, query(i), 0) + t % fours * 4, first, turns, used);
    };
    const auto write = [&](uint32_t t, const Float4& sums) {
        const uint32_t i = t / fours, d = t % fours * 4, head = which.head(i);
        if (which.row(i) >= rows) return;
        const float factor = result_factor(a, head, parts.top(i, used), parts.total(i, used));
        for (uint32_t e = 0; e < 4 && d + e < dims; ++e) {
            a.y[query(i) * dims + d + e] = sums.d[e] * factor;
            if (results) results[i * dims + d + e] = sums.d[e] * factor;
        }
    };
    const uint32_t own = thread_index();
    if constexpr (2 * kMostFours > kBlockThreads) {
        for (uint32_t t = own; t < all; t += kBlockThreads) write(t, sum(t, 0, 1));
    } else {
        const uint32_t turns = kBlockThreads / all;
        if (own < all * turns) room[own] = sum(own % all, own / all, turns);
        sync_block();
        if (own >= all) return;
        Float4 sums = room[own];
        // Loads of so many turns are on their way, where there are as many.
        [[maybe_unused]] constexpr uint32_t kAtOnce = kBlockThreads / kMostFours < 8 ? 1 : 4;
        RL_UNROLL_BY(kAtOnce)
        for (uint32_t turn = 1; turn < turns; ++turn) RL_UNROLL
        for (uint32_t e = 0; e < 4; ++e) sums.d[e] += room[own + turn * all].d[e];
        write(own, sums);
    }
}

}  // namespace redline::hip
