// Causal attention of few rows, with heads of any size and any type of the cache: in f32. It is bound by
// reading the cache, so each key and value is read once for all queries of a block, eight elements per lane.
// Waves take turns at batches of a block's keys and keep a running maximum each; what they found comes
// together in shared memory, and what splits over keys found through `partials`, in the block that is done
// last. Sums over keys are in order within a group of lanes, then over groups, waves and splits.
#pragma once

#include "kernels/attention_parts.h"
#include "kernels/cache.h"
#include "kernels/halfs.h"
#include "kernels/row.h"
#include "kernels/turn.h"

namespace redline::hip {

constexpr uint32_t kFewThreads = kTileThreads;
constexpr uint32_t kFewWaves = kFewThreads / kWave;
constexpr uint32_t kFewSplits = 64;     // at most
constexpr uint32_t kFewLeastKeys = 64;  // of a split

// Where launches overlap none is asked to turn heads, and to be able to costs 2 us.
#ifdef RL_COPIES_AHEAD
constexpr bool kTurns = false;
#else
constexpr bool kTurns = true;
#endif

constexpr uint32_t less_of(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}
constexpr uint32_t more_of(uint32_t a, uint32_t b) {
    return a < b ? b : a;
}
// Blocks that should fit into an NVIDIA multiprocessor at a time. Two leave each thread 128 registers, which
// spill with more queries or dimensions than these.
constexpr uint32_t few_blocks(uint32_t queries, uint32_t dims) {
    return queries <= 4 && queries * dims <= 512 ? 2 : 1;
}

// How a wave shares work: kLanes lanes hold a key, each kParts times eight elements of it; kGroups keys are
// read at a time, kBatch times one after the other.
template <uint32_t kQueries, uint32_t kDims>
struct FewShape {
    static constexpr uint32_t kLanes = less_of(kWave, kDims / 8), kParts = kDims / 8 / kLanes;
    static constexpr uint32_t kGroups = kWave / kLanes, kBatch = kParts == 2 ? 2 : 4;
    static constexpr uint32_t kWaveKeys = kGroups * kBatch;
    // Of the scores of a group's batch, numbered by key, then query, a lane gets kOwn adjacent ones.
    static constexpr uint32_t kScores = kBatch * kQueries, kOwn = more_of(kScores / kLanes, 1);
    static constexpr uint32_t kOwnQueries = less_of(kOwn, kQueries), kOwnKeys = kOwn / kOwnQueries;
    static constexpr uint32_t kKeyLanes = less_of(kBatch / kOwnKeys, kLanes);
};

template <uint32_t kQueries, uint32_t kDims>
struct FewShared {
    using Shape = FewShape<kQueries, kDims>;
    struct alignas(16) OfWave {
        float weights[Shape::kGroups * Shape::kScores];
        float corrections[kQueries];
    } waves[kFewWaves];
    alignas(16) float sums[more_of(more_of(kFewWaves * kQueries, 2) * kDims, 4 * kFewThreads)];
    alignas(16) float results[kQueries * kDims];
    SoftmaxParts<kQueries, kFewSplits> parts;
    uint32_t last;
};

// Every key is read in whole, so the loads need no branches: beyond the range they are those of its last key,
// and of dimensions beyond the head the last, times zero.
template <typename C, typename Shape, typename Rows>
RL_DEVICE void fetch(const Rows& head, uint32_t first, uint32_t to,
                     typename C::Eight (&batch)[Shape::kBatch][Shape::kParts]) {
    if constexpr (kMixed<C>) {
        C::choose(head, [&](auto type) { fetch<decltype(type), Shape>(head, first, to, batch); });
    } else {
        const uint32_t group = lane_index() / Shape::kLanes, lane = lane_index() % Shape::kLanes;
        const uint32_t last = head.dims > 8 ? head.dims - 8 : 0;
        RL_UNROLL
        for (uint32_t j = 0; j < Shape::kBatch; ++j) RL_UNROLL
        for (uint32_t part = 0; part < Shape::kParts; ++part)
            batch[j][part] = C::eight(head, lesser(first + j * Shape::kGroups + group, to - 1),
                                      lesser((part * Shape::kLanes + lane) * 8, C::kWhole ? last : ~0u));
    }
}

// What a lane keeps: its elements of all queries and of their sums, and of the queries whose scores it gets
// the running maximum and its keys' share of the total.
template <uint32_t kQueries, uint32_t kDims>
struct FewState {
    using Shape = FewShape<kQueries, kDims>;
    float queries[Shape::kParts][kQueries][8];
    float sums[Shape::kParts][kQueries][8];
    float tops[Shape::kOwnQueries], totals[Shape::kOwnQueries];
    Seen seen[Shape::kOwnQueries];
};

// Scores of a batch, turned into weights under the running maximum, which go to the wave's shared memory.
template <typename C, uint32_t kQueries, uint32_t kDims>
RL_DEVICE void weigh_batch(
    const args::AttentionArgs& a, uint32_t first, uint32_t to,
    const typename C::Eight (&keys)[FewShape<kQueries, kDims>::kBatch][FewShape<kQueries, kDims>::kParts],
    FewState<kQueries, kDims>& state, typename FewShared<kQueries, kDims>::OfWave& shared) {
    using S = FewShape<kQueries, kDims>;
    float scores[S::kScores] = {};
    RL_UNROLL
    for (uint32_t j = 0; j < S::kBatch; ++j) RL_UNROLL
    for (uint32_t part = 0; part < S::kParts; ++part) {
        float k[8];
        unpack(keys[j][part], k);
        RL_UNROLL
        for (uint32_t i = 0; i < kQueries; ++i) {
            float dot = k[0] * state.queries[part][i][0];
            RL_UNROLL
            for (uint32_t e = 1; e < 8; ++e) dot = fused(k[e], state.queries[part][i][e], dot);
            scores[j * kQueries + i] = fused(dot, factor(keys[j][part]), scores[j * kQueries + i]);
        }
    }
    spread_sums<S::kScores, 1, S::kLanes>(scores);
    const uint32_t own = first_sum<S::kScores, 1, S::kLanes>(), group = lane_index() / S::kLanes;
    const uint32_t own_key = first + own / kQueries * S::kGroups + group;
    float most[S::kOwnQueries];
    RL_UNROLL
    for (uint32_t i = 0; i < S::kOwnQueries; ++i) most[i] = -kInfinity;
    RL_UNROLL
    for (uint32_t n = 0; n < S::kOwn; ++n) {
        const uint32_t i = n % S::kOwnQueries, key = own_key + n / S::kOwnQueries * S::kGroups;
        float score = scores[n] * a.scale;
        if (a.softcap > 0.0f) score = capped(score, a.softcap);
        scores[n] = key < to && key >= state.seen[i].begin && key < state.seen[i].end ? score : -kInfinity;
        most[i] = larger(scores[n], most[i]);
    }
    const auto fold = [](float x, float y) { return larger(x, y); };
    RL_UNROLL
    for (uint32_t i = 0; i < S::kOwnQueries; ++i) {
        most[i] = fold_lanes<S::kLanes, kWave>(fold_lanes<1, S::kKeyLanes>(most[i], fold), fold);
        const float now = larger(most[i], state.tops[i]), correction = exp_below(state.tops[i], now);
        state.tops[i] = now;
        state.totals[i] *= correction;
        shared.corrections[own % kQueries + i] = correction;
    }
    RL_UNROLL
    for (uint32_t n = 0; n < S::kOwn; ++n) {
        const uint32_t i = n % S::kOwnQueries;
        const float weight = exp_below(scores[n], state.tops[i]);
        state.totals[i] += weight;
        shared.weights[group * S::kScores + own + n] = weight;
    }
}

template <typename C, uint32_t kQueries, uint32_t kDims>
RL_DEVICE void add_values(
    const typename C::Eight (&values)[FewShape<kQueries, kDims>::kBatch][FewShape<kQueries, kDims>::kParts],
    FewState<kQueries, kDims>& state, const typename FewShared<kQueries, kDims>::OfWave& shared) {
    using S = FewShape<kQueries, kDims>;
    float least = 1.0f;
    RL_UNROLL
    for (uint32_t i = 0; i < kQueries; ++i) least = shared.corrections[i] == 1.0f ? least : 0.0f;
    if (least == 0.0f) {
        RL_UNROLL
        for (uint32_t part = 0; part < S::kParts; ++part) RL_UNROLL
        for (uint32_t i = 0; i < kQueries; ++i) RL_UNROLL
        for (uint32_t e = 0; e < 8; ++e) state.sums[part][i][e] *= shared.corrections[i];
    }
    const float* weights = shared.weights + lane_index() / S::kLanes * S::kScores;
    RL_UNROLL
    for (uint32_t j = 0; j < S::kBatch; ++j) RL_UNROLL
    for (uint32_t part = 0; part < S::kParts; ++part) {
        float v[8];
        unpack(values[j][part], v);
        RL_UNROLL
        for (uint32_t i = 0; i < kQueries; ++i) {
            const float weight = weights[j * kQueries + i] * factor(values[j][part]);
            RL_UNROLL
            for (uint32_t e = 0; e < 8; ++e)
                state.sums[part][i][e] = fused(weight, v[e], state.sums[part][i][e]);
        }
    }
}

// One row's queries are turned in shared memory; and where its own position is among the block's keys, its
// key and value go to the cache first. Blocks that share a kv head all store the same.
template <typename C, uint32_t kQueries, uint32_t kDims>
RL_DEVICE void turn_queries(const args::AttentionArgs& a, const Queries& which, const KeyRange& keys,
                            uint32_t position, FewShared<kQueries, kDims>& shared) {
    const uint32_t dims = a.cache.head_dim, queries = lesser(kQueries, which.group - which.first);
    const uint32_t work = queries + (keys.to > position ? 2 : 0);
    const size_t at = place_in_cache(a.cache, which.kv_head, position, 0), kv = size_t(which.kv_head) * dims;
    for (uint32_t i = wave_index(); i < work; i += kFewWaves) {
        if (i < queries) {
            turn_head(a.turn, false, 0, a.q + size_t(which.head(i)) * dims, dims,
                      [&](uint32_t e, float value) { shared.results[i * kDims + e] = value; });
        } else if (i == queries) {
            turn_head(a.turn, true, 0, a.k + kv, dims,
                      [&](uint32_t e, float value) { shared.sums[e] = value; });
            store_head<C>(a.cache, Side::keys, at, shared.sums);
        } else {
            copy_head(a.v + kv, dims, shared.sums + kDims);
            store_head<C>(a.cache, Side::values, at, shared.sums + kDims);
        }
    }
    sync_block();
}

template <typename C, uint32_t kQueries, uint32_t kDims>
RL_DEVICE void load_queries(const args::AttentionArgs& a, const Queries& which, uint32_t rows,
                            uint32_t position, const float* turned, FewState<kQueries, kDims>& state) {
    using S = FewShape<kQueries, kDims>;
    const uint32_t lane = lane_index() % S::kLanes, dims = a.cache.head_dim;
    RL_UNROLL
    for (uint32_t i = 0; i < kQueries; ++i) {
        const uint32_t row = lesser(which.row(i), rows - 1);
        // Beyond the row's last query the last: of those nothing is used.
        const float* from = turned ? turned + lesser(i, which.group - which.first - 1) * kDims
                                   : a.q + (size_t(row) * a.heads + which.head(i)) * dims;
        const HeadRows query = {reinterpret_cast<const uint8_t*>(from), nullptr, dims};
        RL_UNROLL
        for (uint32_t part = 0; part < S::kParts; ++part) {
            const uint32_t d = (part * S::kLanes + lane) * 8;
            FloatEight eight;
            if constexpr (C::kWhole)
                eight = cache_f32::eight(query, 0, lesser(d, dims - 8));
            else
                eight = any_size<cache_f32>::eight(query, 0, d);
            RL_UNROLL
            for (uint32_t e = 0; e < 8; ++e) {
                state.queries[part][i][e] = d < dims ? eight.d[e] : 0.0f;
                state.sums[part][i][e] = 0.0f;
            }
        }
    }
    const uint32_t own = first_sum<S::kScores, 1, S::kLanes>() % kQueries;
    RL_UNROLL
    for (uint32_t i = 0; i < S::kOwnQueries; ++i) {
        state.seen[i] = keys_seen(a, which.row(own + i), rows, position);
        state.tops[i] = -kInfinity;
        state.totals[i] = 0.0f;
    }
}

// The sums of a wave's groups of lanes come together, and go to shared memory with maximum and total.
template <uint32_t kQueries, uint32_t kDims>
RL_DEVICE void leave_sums(FewState<kQueries, kDims>& state, FewShared<kQueries, kDims>& shared) {
    using S = FewShape<kQueries, kDims>;
    const auto plus = [](float x, float y) { return x + y; };
    const uint32_t own = first_sum<S::kScores, 1, S::kLanes>() % kQueries;
    RL_UNROLL
    for (uint32_t i = 0; i < S::kOwnQueries; ++i) {
        const float total =
            fold_lanes<S::kLanes, kWave>(fold_lanes<1, S::kKeyLanes>(state.totals[i], plus), plus);
        shared.parts.tops[wave_index() * kQueries + own + i] = state.tops[i];
        shared.parts.totals[wave_index() * kQueries + own + i] = total;
    }
    constexpr uint32_t kSums = S::kParts * kQueries * 8;
    float* sums = &state.sums[0][0][0];
    spread_sums<kSums, S::kLanes, kWave>(sums);
    const uint32_t first = first_sum<kSums, S::kLanes, kWave>();
    RL_UNROLL
    for (uint32_t n = 0; n < more_of(kSums / S::kGroups, 1); ++n) {
        const uint32_t at = first + n, part = at / (kQueries * 8), i = at / 8 % kQueries;
        const uint32_t d = (part * S::kLanes + lane_index() % S::kLanes) * 8 + at % 8;
        shared.sums[(wave_index() * kQueries + i) * kDims + d] = sums[n];
    }
}

// The waves' sums come together, and with one split they are the result; else they go to `partials`.
template <uint32_t kQueries, uint32_t kDims>
RL_DEVICE void merge_waves(const args::AttentionArgs& a, const Queries& which, uint32_t rows, uint32_t used,
                           FewShared<kQueries, kDims>& shared) {
    const uint32_t dims = a.cache.head_dim;
    shared.parts.weigh(kFewWaves, kFewThreads);
    constexpr uint32_t kAll = kQueries * kDims, kRounds = (kAll + kFewThreads - 1) / kFewThreads;
    RL_UNROLL_BY(2)
    for (uint32_t n = 0; n < kRounds; ++n) {
        const uint32_t t = thread_index() + n * kFewThreads;
        if (kAll % kFewThreads != 0 && t >= kAll) continue;
        const uint32_t i = t / kDims, d = t % kDims, row = which.row(i), head = which.head(i);
        if (d >= dims || row >= rows) continue;
        float sum = 0.0f;
        RL_UNROLL
        for (uint32_t w = 0; w < kFewWaves; ++w)
            sum = fused(shared.parts.factors[w * kQueries + i], shared.sums[(w * kQueries + i) * kDims + d],
                        sum);
        const size_t query = size_t(row) * a.heads + head;
        const float top = shared.parts.top(i, kFewWaves), total = shared.parts.total(i, kFewWaves);
        if (used == 1) {
            a.y[query * dims + d] = shared.results[i * dims + d] = sum * result_factor(a, head, top, total);
            continue;
        }
        partial_values(a, query, block_index().x)[d] = sum;
        if (d > 0) continue;
        float* stats = partial_stats(a, query, block_index().x);
        stats[0] = top;
        stats[1] = total;
    }
}

// Waves take turns at batches of keys. Several blocks of a multiprocessor hide each other's waiting: to read
// ahead takes registers that they need.
template <typename C, uint32_t kQueries, uint32_t kDims>
RL_DEVICE void attend_keys(const args::AttentionArgs& a, const Queries& which, const KeyRange& keys,
                           FewState<kQueries, kDims>& state, FewShared<kQueries, kDims>& shared) {
    using S = FewShape<kQueries, kDims>;
    constexpr uint32_t kStep = kFewWaves * S::kWaveKeys;
    const Cache& c = a.cache;
    const auto all_keys = C::head(c, Side::keys, which.kv_head),
               all_values = C::head(c, Side::values, which.kv_head);
    const KeyRows in_cache = key_rows(c, which.first_row, keys.from, keys.to);
    typename FewShared<kQueries, kDims>::OfWave& own = shared.waves[wave_index()];
    typename C::Eight k[S::kBatch][S::kParts], v[S::kBatch][S::kParts];
    for (uint32_t first = keys.from + wave_index() * S::kWaveKeys; first < keys.to; first += kStep) {
        const uint32_t before = in_cache.before(first);
        fetch<C, S>(all_keys, first - before, keys.to - before, k);
        fetch<C, S>(all_values, first - before, keys.to - before, v);
        weigh_batch<C>(a, first, keys.to, k, state, own);
        sync_wave();
        add_values<C>(v, state, own);
        sync_wave();
    }
}

// Brings the block's first keys and values into the device's cache while the launch before still runs. What
// that launch stores goes through the same cache, so that nothing old is read afterwards.
template <typename C>
RL_DEVICE void begin_keys([[maybe_unused]] const args::AttentionArgs& a,
                          [[maybe_unused]] const Queries& which, [[maybe_unused]] const KeyRange& keys) {
#ifdef RL_COPIES_AHEAD
    constexpr uint32_t kLine = 128;
    const HeadRows all_keys = C::head(a.cache, Side::keys, which.kv_head),
                   all_values = C::head(a.cache, Side::values, which.kv_head);
    const uint32_t key = keys.from + thread_index(), bytes = all_keys.dims * C::kElementBytes;
    if (key >= keys.to) return;
    const KeyRows in_cache = key_rows(a.cache, which.first_row, keys.from, keys.to);
    const size_t row = size_t(key - in_cache.before(key)) * bytes;
    for (uint32_t i = 0; i < bytes; i += kLine) {
        bring_near(all_keys.rows + row + i);
        bring_near(all_values.rows + row + i);
    }
#endif
}

// Leaves the results of the block's heads, whole eights, for the product that takes them as halfs: a wave for
// each head.
template <uint32_t kQueries>
RL_DEVICE void leave_heads([[maybe_unused]] const args::AttentionArgs& a,
                           [[maybe_unused]] const Queries& which, [[maybe_unused]] uint32_t rows,
                           [[maybe_unused]] const float* results) {
#ifdef RL_FACTORS
    const uint32_t dims = a.cache.head_dim;
    RL_FEW_TURNS
    for (uint32_t i = wave_index(); i < kQueries; i += kFewWaves) {
        const uint32_t row = which.row(i), head = which.head(i);
        if (row >= rows) return;
        float most = 0.0f, squares = 0.0f;
        for (uint32_t eight = lane_index(); eight < dims / 8; eight += kWave) {
            float values[8];
            const uint32_t all = head * (dims / 8) + eight;
            RL_UNROLL
            for (uint32_t e = 0; e < 8; ++e) {
                values[e] = results[i * dims + eight * 8 + e];
                squares = fused(values[e], values[e], squares);
                if (a.left.gain) values[e] *= a.left.gain[all * 8 + e];
            }
            reinterpret_cast<Words4*>(a.left.halfs)[few_eight(all / 4, all % 4, row, a.left.tokens)] =
                handed_eight(values, most);
        }
        most = wave_max(most);
        squares = wave_sum(squares);
        if (lane_index() == 0) a.left.reaches[size_t(row) * a.heads + head] = {squares, most};
    }
#endif
}

template <typename C, uint32_t kQueries, uint32_t kDims>
RL_DEVICE void attention_few(const args::AttentionArgs& a) {
    using S = FewShape<kQueries, kDims>;
    RL_SHARED FewShared<kQueries, kDims> shared;
    let_next_start();
    const Queries which = block_queries(a, kQueries);
    const auto [rows, position] = block_rows(a, which);
    if (which.row(0) >= rows) return;
    const KeyRange keys = block_keys(a, which, kQueries, rows, position, kFewLeastKeys, S::kWaveKeys);
    if (block_index().x >= keys.used) return;
    if constexpr (!kMixed<C>) begin_keys<C>(a, which, keys);
    wait_for_inputs();  // the host wrote all that was read so far
    FewState<kQueries, kDims> state;
    const bool turns = kTurns && !kMixed<C> && a.turn.table;
    if constexpr (!kMixed<C>)
        if (turns) turn_queries<C>(args_in_lanes(a), which, keys, position, shared);
    load_queries<C>(a, which, rows, position, turns ? shared.results : nullptr, state);
    attend_keys<C>(a, which, keys, state, shared);
    leave_sums(state, shared);
    merge_waves(a, which, rows, keys.used, shared);
    if (keys.used > 1) {
        if (!is_last_split(a, keys.used, shared.last)) return;
        merge_splits<kDims, kFewThreads>(a, which, rows, keys.used, shared.parts,
                                         reinterpret_cast<Float4*>(shared.sums), shared.results);
    }
    if (!C::kWhole || (!a.hand.row && !a.left.halfs)) return;  // heads of any size are not handed on
    sync_block();
    if (a.left.halfs) return leave_heads<kQueries>(a, which, rows, shared.results);
    const uint32_t heads = lesser(kQueries, which.group - which.first), dims = a.cache.head_dim;
    leave_halves<kFewThreads>(a.hand, shared.results, which.head(0) * dims / kHalfUnit,
                              heads * dims / kHalfUnit);
}

}  // namespace redline::hip
