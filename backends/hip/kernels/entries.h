// Attention of all heads of a row to the same rows of latents: those of the last tokens, and entries of
// blocks. As in latent.h a block reads what is seen for all of its queries at once.
#pragma once

#include "kernels/blocks.h"
#include "kernels/latent.h"

namespace redline::hip {

// What a row sees, in this order: tokens from `first` on, then entries.
struct EntriesSeen {
    uint32_t row;
    uint32_t first, tokens;
    uint32_t complete;  // blocks
    uint32_t all;       // tokens and entries
};
RL_DEVICE EntriesSeen entries_seen(const args::EntryArgs& e, uint32_t row) {
    EntriesSeen seen = {row, 0, 0, 0, 0};
    const uint32_t end = token_of(e.latent.heads.step, e.latent.latents, row) + 1;
    seen.first = end > e.window ? end - e.window : 0;
    seen.tokens = end - seen.first;
    seen.complete = e.ratio > 0 ? end / e.ratio : 0;
    seen.all = seen.tokens + (e.chosen ? lesser(seen.complete, e.most) : seen.complete);
    return seen;
}

constexpr uint32_t kEntrySplits = 32;         // at most
constexpr uint32_t kOfEntries = 0x80000000u;  // a row of the entries

// Where the key of a number lies.
RL_DEVICE uint32_t place_of(const args::EntryArgs& e, const EntriesSeen& seen, uint32_t number) {
    if (number < seen.tokens) {
        const Cache& ring = e.latent.latents;
        return row_of_token(ring, seen.row, row_in_sequence(ring, seen.first + number));
    }
    uint32_t block = number - seen.tokens;
    if (e.chosen) {
        const float chosen = e.chosen[size_t(seen.row) * e.most + block];
        block = lesser(chosen > 0.0f ? uint32_t(chosen) : 0, seen.complete - 1);
    }
    return row_of_token(e.entries, seen.row, block * e.ratio) / e.ratio | kOfEntries;
}

// A tile of keys [first, to); where they lie is in shared memory.
struct EntryTile {
    HeadRows latents, entries;
    uint32_t first, to;
    const uint32_t* places;
    RL_DEVICE uint32_t dims() const { return latents.dims; }
    RL_DEVICE uint32_t row(uint32_t t) const { return places[t]; }
    template <typename C>
    RL_DEVICE typename C::Eight eight(uint32_t row, uint32_t d) const {
        const bool of_entries = row >= kOfEntries;
        const HeadRows rows = {of_entries ? entries.rows : latents.rows,
                               of_entries ? entries.scales : latents.scales, latents.dims};
        return latent_eight<C>(rows, row & ~kOfEntries, d);
    }
};

template <typename C, uint32_t kQueries, uint32_t kRank>
RL_DEVICE void entry_attention(const args::EntryArgs& e) {
    using S = LatentShape<kQueries, kRank>;
    RL_SHARED LatentShared<kQueries, kRank> shared;
    RL_SHARED SoftmaxParts<kQueries, kEntrySplits> parts;
    RL_SHARED uint32_t places[S::kKeys];
    RL_SHARED uint32_t last;
    RL_SHARED_POOL(pool);  // queries; in the end results, then what merging splits needs
    auto* queries = reinterpret_cast<float*>(pool);
    const args::AttentionArgs& a = e.latent.heads;
    const Queries which = block_queries(a, kQueries);  // of one row
    const uint32_t row = which.first_row;
    if (row >= a.step->rows) return;
    const EntriesSeen seen = entries_seen(e, row);
    const KeyRange keys = split_of(seen.all, a.splits, kLatentLeastKeys, S::kKeys);
    if (block_index().x >= keys.used) return;
    load_latent_queries<kQueries>(e.latent, which, row + 1, queries);
    for (uint32_t i = thread_index(); i < kQueries; i += kLatentThreads) {
        shared.tops[i] = -kInfinity;
        shared.totals[i] = 0.0f;
    }
    LatentSums<kQueries, kRank> sums = {};
    const HeadRows latents = C::head(e.latent.latents, Side::keys, 0);
    const HeadRows entries = e.ratio > 0 ? C::head(e.entries, Side::keys, 0) : latents;
    for (uint32_t first = keys.from; first < keys.to; first += S::kKeys) {
        const EntryTile tile = {latents, entries, first, keys.to, places};
        sync_block();  // the tile before is done
        for (uint32_t t = thread_index(); t < S::kKeys; t += kLatentThreads)
            places[t] = place_of(e, seen, lesser(first + t, keys.to - 1));
        sync_block();  // queries are there, too
        score_tile<C, kQueries, kRank>(tile, queries, a.scale, shared.weights);
        sync_block();
        weigh_tile(
            tile, [&](uint32_t i) { return which.row(i) == row ? keys.to : 0; }, shared);
        sync_block();
        add_latents<C>(tile, shared, sums);
    }
    // What is read only now need not be held in scalar registers, which gfx90a has too few of.
    const args::AttentionArgs& late = args_in_lanes(e).latent.heads;
    leave_latents(late, which, row + 1, keys.used, shared, sums, queries);
    if (keys.used > 1 && is_last_split(a, keys.used, last))
        merge_splits<kRank, kLatentThreads>(late, which, row + 1, keys.used, parts,
                                            reinterpret_cast<Float4*>(pool), nullptr);
}

}  // namespace redline::hip
