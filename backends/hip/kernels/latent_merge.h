// How the splits of attention to latents come together: in a launch of its own, since one block alone would
// take longer for the rank's many elements than all do for the keys.
#pragma once

#include "kernels/attention_parts.h"
#include "kernels/latent_args.h"

namespace redline::hip {

constexpr uint32_t kLatentLeastKeys = 64;  // of a split

// Keys of a block of `count` queries, which see all before them: shares are whole tiles of `unit`.
RL_DEVICE KeyRange latent_keys(const args::AttentionArgs& a, const Queries& which, uint32_t count,
                               uint32_t rows, uint32_t position, uint32_t unit) {
    const uint32_t last_row = lesser(which.row(count - 1), rows - 1);
    return split_of(position + last_row + 1, a.splits, kLatentLeastKeys, unit);
}

// A block takes kMergeFours times four elements of a query; kMergeTurns groups of threads share the splits.
constexpr uint32_t kMergeFours = args::kMergeFours, kMergeTurns = 8;
constexpr uint32_t kMergeEach = args::kLatentMostSplits / kMergeTurns;  // splits of a turn, at most

struct MergeShared {
    float factors[args::kLatentMostSplits];
    float total;
    Float4 sums[kMergeTurns * kMergeFours];
};

// What splits are multiplied with, by the first wave.
RL_DEVICE void weigh_latent_splits(const float* stats, uint32_t used, MergeShared& shared) {
    constexpr uint32_t kOwn = args::kLatentMostSplits / kWave;
    if (wave_index() == 0) {
        float tops[kOwn], totals[kOwn], top = -kInfinity, total = 0.0f;
        RL_UNROLL
        for (uint32_t n = 0; n < kOwn; ++n) {
            const uint32_t s = lane_index() + n * kWave;
            const Words2 both = load<Words2>(stats, lesser(s, used - 1));
            tops[n] = s < used ? bits_float(both.d[0]) : -kInfinity;
            totals[n] = bits_float(both.d[1]);
            top = larger(tops[n], top);
        }
        top = wave_max(top);
        RL_UNROLL
        for (uint32_t n = 0; n < kOwn; ++n) {
            const float factor = exp_below(tops[n], top);
            shared.factors[lane_index() + n * kWave] = factor;
            total = fused(factor, totals[n], total);
        }
        total = wave_sum(total);
        if (lane_index() == 0) shared.total = total;
    }
    sync_block();
}

RL_DEVICE void merge_latents(const args::LatentMergeArgs& m) {
    RL_SHARED MergeShared shared;
    const args::AttentionArgs& a = m.heads;
    const uint32_t fours = partial_stride(a) / 4, chunks = (fours + kMergeFours - 1) / kMergeFours;
    const uint32_t query = block_index().x / chunks, first = block_index().x % chunks * kMergeFours;
    const uint32_t row = query / a.heads, head = query % a.heads, rank = a.cache.head_dim;
    const Queries which = a.row_groups == 0 ? Queries{a.heads, query / m.queries * m.queries, 0, a.first_row}
                                            : Queries{a.heads, head / m.queries * m.queries, 0, row};
    const auto [rows, position] = block_rows(a, which);
    if (row >= rows) return;
    const uint32_t used = latent_keys(a, which, m.queries, rows, position, m.unit).used;
    if (used == 1) return;
    constexpr uint32_t kOwn = kMergeTurns * kMergeFours / kTileThreads;
    static_assert(kMergeTurns * kMergeFours == kOwn * kTileThreads);
    Float4 parts[kOwn][kMergeEach];
    const auto four = [&](uint32_t n) { return (thread_index() + n * kTileThreads) % kMergeFours; };
    const auto turn = [&](uint32_t n) { return (thread_index() + n * kTileThreads) / kMergeFours; };
    // Without branches, so that all loads are on their way: beyond the end they are of the last split.
    RL_UNROLL
    for (uint32_t n = 0; n < kOwn; ++n) RL_UNROLL
    for (uint32_t s = 0; s < kMergeEach; ++s)
        parts[n][s] = load<Float4>(partial_values(a, query, lesser(turn(n) + s * kMergeTurns, used - 1)),
                                   lesser(first + four(n), fours - 1));
    weigh_latent_splits(partial_stats(a, query, 0), used, shared);
    RL_UNROLL
    for (uint32_t n = 0; n < kOwn; ++n) {
        Float4 sum = {};
        RL_UNROLL
        for (uint32_t s = 0; s < kMergeEach; ++s) {
            const uint32_t split = turn(n) + s * kMergeTurns;
            RL_UNROLL
            for (uint32_t e = 0; e < 4; ++e) {
                const float more = fused(shared.factors[split], parts[n][s].d[e], sum.d[e]);
                sum.d[e] = split < used ? more : sum.d[e];
            }
        }
        shared.sums[turn(n) * kMergeFours + four(n)] = sum;
    }
    sync_block();
    for (uint32_t t = thread_index(); t < kMergeFours * 4; t += kTileThreads) {
        const uint32_t d = first * 4 + t;
        if (d >= rank) return;
        float sum = 0.0f;
        RL_UNROLL
        for (uint32_t part = 0; part < kMergeTurns; ++part)
            sum += shared.sums[part * kMergeFours + t / 4].d[t % 4];
        a.y[size_t(query) * rank + d] = sum / shared.total;
    }
}

}  // namespace redline::hip
