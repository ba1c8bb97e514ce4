// Attention to chosen blocks as attention_few.h computes it: a block's queries are heads of one row, and a
// key's number counts what the row sees, the tokens of its blocks and then those behind the last complete
// one.
#pragma once

#include "kernels/attention_few.h"
#include "kernels/blocks.h"

namespace redline::hip {

struct BlocksSeen {
    uint32_t row;
    uint32_t in_blocks;  // tokens
    uint32_t complete;   // tokens of complete blocks: those from here on are seen
    uint32_t all;
};
RL_DEVICE BlocksSeen blocks_seen(const args::BlockFewArgs& b, uint32_t row) {
    const uint32_t end = token_of(b.heads.step, b.heads.cache, row) + 1, blocks = end / b.ratio;
    const uint32_t in_blocks = lesser(blocks, b.most) * b.ratio, complete = blocks * b.ratio;
    return {row, in_blocks, complete, in_blocks + end - complete};
}
RL_DEVICE uint32_t token_seen(const args::BlockFewArgs& b, const BlocksSeen& seen, uint32_t key) {
    if (key >= seen.in_blocks) return seen.complete + key - seen.in_blocks;
    const float chosen = b.chosen[size_t(seen.row) * b.most + key / b.ratio];
    return (chosen > 0.0f ? uint32_t(chosen) : 0) * b.ratio + key % b.ratio;
}

// Where the keys of a lane's batch from `first` on lie; beyond the last it is the last again.
template <typename Shape>
RL_DEVICE void find_rows(const args::BlockFewArgs& b, const BlocksSeen& seen, uint32_t first, uint32_t to,
                         uint32_t (&rows)[Shape::kBatch]) {
    const uint32_t own = first + lane_index() / Shape::kLanes;
    RL_UNROLL
    for (uint32_t j = 0; j < Shape::kBatch; ++j)
        rows[j] = row_of_token(b.heads.cache, seen.row,
                               token_seen(b, seen, lesser(own + j * Shape::kGroups, to - 1)));
}

template <typename C, typename Shape, typename Rows>
RL_DEVICE void fetch_rows(const Rows& head, const uint32_t (&rows)[Shape::kBatch],
                          typename C::Eight (&batch)[Shape::kBatch][Shape::kParts]) {
    if constexpr (kMixed<C>) {
        C::choose(head, [&](auto type) { fetch_rows<decltype(type), Shape>(head, rows, batch); });
    } else {
        const uint32_t lane = lane_index() % Shape::kLanes, last = head.dims - 8;
        RL_UNROLL
        for (uint32_t j = 0; j < Shape::kBatch; ++j) RL_UNROLL
        for (uint32_t part = 0; part < Shape::kParts; ++part)
            batch[j][part] = C::eight(head, rows[j], lesser((part * Shape::kLanes + lane) * 8, last));
    }
}

template <typename C, uint32_t kQueries, uint32_t kDims>
RL_DEVICE void attend_to_blocks(const args::BlockFewArgs& b, const args::AttentionArgs& a,
                                const BlocksSeen& seen, uint32_t kv_head, const KeyRange& keys,
                                FewState<kQueries, kDims>& state, FewShared<kQueries, kDims>& shared) {
    using S = FewShape<kQueries, kDims>;
    constexpr uint32_t kStep = kFewWaves * S::kWaveKeys;
    const Cache& c = b.heads.cache;
    const auto all_keys = C::head(c, Side::keys, kv_head), all_values = C::head(c, Side::values, kv_head);
    typename FewShared<kQueries, kDims>::OfWave& own = shared.waves[wave_index()];
    typename C::Eight k[S::kBatch][S::kParts], v[S::kBatch][S::kParts];
    uint32_t rows[S::kBatch], first = keys.from + wave_index() * S::kWaveKeys;
    if (first < keys.to) find_rows<S>(b, seen, first, keys.to, rows);
    for (; first < keys.to; first += kStep) {
        fetch_rows<C, S>(all_keys, rows, k);
        fetch_rows<C, S>(all_values, rows, v);
        // Of the next batch, while this one is on its way.
        if (first + kStep < keys.to) find_rows<S>(b, seen, first + kStep, keys.to, rows);
        weigh_batch<C>(a, first, keys.to, k, state, own);
        sync_wave();
        add_values<C>(v, state, own);
        sync_wave();
    }
}

template <typename C, uint32_t kQueries, uint32_t kDims>
RL_DEVICE void block_few(const args::BlockFewArgs& b) {
    using S = FewShape<kQueries, kDims>;
    RL_SHARED FewShared<kQueries, kDims> shared;
    // Nothing of what only other attention has.
    args::AttentionArgs a = b.heads;
    a.sinks = nullptr;
    a.softcap = 0.0f;
    const Queries which = block_queries(a, kQueries);  // of one row
    const uint32_t row = which.first_row, rows = row + 1;
    if (row >= a.step->rows) return;
    const BlocksSeen seen = blocks_seen(b, row);
    const KeyRange keys = split_of(seen.all, a.splits, kFewLeastKeys, S::kWaveKeys);
    if (block_index().x >= keys.used) return;
    FewState<kQueries, kDims> state;
    load_queries<C>(a, which, rows, 0, nullptr, state);
    // Each query sees all keys; those beyond the row's last are not used.
    RL_UNROLL
    for (uint32_t i = 0; i < S::kOwnQueries; ++i) state.seen[i] = {0, seen.all};
    attend_to_blocks<C>(b, a, seen, which.kv_head, keys, state, shared);
    leave_sums(state, shared);
    merge_waves(a, which, rows, keys.used, shared);
    if (keys.used > 1 && is_last_split(a, keys.used, shared.last))
        merge_splits<kDims, kFewThreads>(a, which, rows, keys.used, shared.parts,
                                         reinterpret_cast<Float4*>(shared.sums), nullptr);
}

}  // namespace redline::hip
