// Attention to chosen blocks, and the scores by which they are chosen, over a cache of one type.
#pragma once

#include "kernels/block_args.h"
#include "kernels/cache.h"
#include "kernels/reduce.h"

namespace redline::hip {

RL_DEVICE uint32_t token_of(const args::Step* step, const Cache& c, uint32_t row) {
    return c.places ? c.places[row].position : step->position + row;
}
// Where a token of a row's sequence lies in a cache that has rows for all tokens.
RL_DEVICE uint32_t row_of_token(const Cache& c, uint32_t row, uint32_t token) {
    return row_in_cache(c.places ? c.pages + c.places[row].list : nullptr, token);
}

// How scores of a row are divided: parts of a block's threads have heads of their own, and each thread two
// keys. Elements come a stretch at a time through shared memory.
constexpr uint32_t kScoreParts = kThreads < 4 ? 1 : 4, kScoreLanes = kThreads / kScoreParts,
                   kScoreKeys = 2 * kScoreLanes, kScoreDims = 32, kMostScoreHeads = 8;

struct ScoreShared {
    Float4 queries[kScoreParts * kMostScoreHeads * kScoreDims / 4];
    float keys[kScoreKeys * (kScoreDims + 1)];  // so that lanes read from different banks
    float sums[kScoreParts * kScoreKeys];
    uint32_t places[kScoreKeys];  // of the keys in the cache
};

// Elements from `first` on of all keys, zeros behind the last.
template <typename C>
RL_DEVICE void share_keys(const HeadRows& keys, uint32_t first, ScoreShared& shared) {
    for (uint32_t i = thread_index(); i < kScoreKeys * (kScoreDims / 8); i += kThreads) {
        const uint32_t key = i / (kScoreDims / 8), element = i % (kScoreDims / 8) * 8;
        float eight[8] = {}, times = 0.0f;
        if (first + element < keys.dims) {
            const typename C::Eight read = C::eight(keys, shared.places[key], first + element);
            unpack(read, eight);
            times = factor(read);
        }
        RL_UNROLL
        for (uint32_t e = 0; e < 8; ++e) shared.keys[key * (kScoreDims + 1) + element + e] = eight[e] * times;
    }
}

// Likewise of `heads` queries.
RL_DEVICE void share_queries(const float* queries, uint32_t heads, uint32_t dims, uint32_t first,
                             uint32_t room, ScoreShared& shared) {
    for (uint32_t i = thread_index(); i < room * (kScoreDims / 4); i += kThreads) {
        const uint32_t head = i / (kScoreDims / 4), element = first + i % (kScoreDims / 4) * 4;
        Float4 four = {};
        RL_UNROLL
        for (uint32_t e = 0; e < 4; ++e)
            if (head < heads && element + e < dims) four.d[e] = queries[size_t(head) * dims + element + e];
        shared.queries[i] = four;
    }
}

// Adds to the sums of a thread's keys what the heads from `head` on give, kHeads of them for each part.
template <typename C, uint32_t kHeads>
RL_DEVICE void add_scores(const args::BlockArgs& a, const HeadRows& keys, uint32_t row, uint32_t head,
                          ScoreShared& shared, float* sums) {
    const uint32_t dims = keys.dims, part = thread_index() / kScoreLanes, lane = thread_index() % kScoreLanes;
    const float* const queries = a.q + (size_t(row) * a.heads + head) * dims;
    float products[2][kHeads] = {};
    for (uint32_t first = 0; first < dims; first += kScoreDims) {
        sync_block();  // places are there, and the stretch before is done
        share_keys<C>(keys, first, shared);
        share_queries(queries, a.heads - head, dims, first, kScoreParts * kHeads, shared);
        sync_block();
        const Float4* const own = shared.queries + part * kHeads * (kScoreDims / 4);
        const float* const key = shared.keys + lane * (kScoreDims + 1);
        RL_UNROLL_BY(2)
        for (uint32_t four = 0; four < kScoreDims / 4; ++four) {
            float elements[2][4];
            RL_UNROLL
            for (uint32_t e = 0; e < 4; ++e) {
                elements[0][e] = key[four * 4 + e];
                elements[1][e] = key[kScoreLanes * (kScoreDims + 1) + four * 4 + e];
            }
            RL_UNROLL
            for (uint32_t h = 0; h < kHeads; ++h) {
                const Float4 q = own[h * (kScoreDims / 4) + four];
                RL_UNROLL
                for (uint32_t k = 0; k < 2; ++k) {
                    RL_UNROLL
                    for (uint32_t e = 0; e < 4; ++e)
                        products[k][h] = fused(q.d[e], elements[k][e], products[k][h]);
                }
            }
        }
    }
    RL_UNROLL
    for (uint32_t h = 0; h < kHeads; ++h) {
        const uint32_t own = head + part * kHeads + h;
        if (own >= a.heads) continue;
        const float weight = a.weights ? a.weights[size_t(row) * a.heads + own] : 1.0f;
        RL_UNROLL
        for (uint32_t k = 0; k < 2; ++k) {
            const float raised = products[k][h] < 0.0f ? 0.0f : products[k][h];  // lets NaN through
            sums[k] = fused(weight, raised, sums[k]);
        }
    }
}

template <typename C, uint32_t kHeads>
RL_DEVICE void score_keys(const args::BlockArgs& a, uint32_t row, uint32_t first, uint32_t complete,
                          ScoreShared& shared) {
    const Cache& c = a.cache;
    const uint32_t tid = thread_index();
    for (uint32_t i = tid; i < kScoreKeys; i += kThreads) {
        const uint32_t block = lesser(first + i, complete - 1);
        shared.places[i] = row_of_token(c, row, (block + 1) * a.ratio - 1) / a.row_tokens;
    }
    const HeadRows keys = C::head(c, Side::keys, 0);
    float sums[2] = {};
    for (uint32_t head = 0; head < a.heads; head += kScoreParts * kHeads)
        add_scores<C, kHeads>(a, keys, row, head, shared, sums);
    RL_UNROLL
    for (uint32_t k = 0; k < 2; ++k)
        shared.sums[tid / kScoreLanes * kScoreKeys + k * kScoreLanes + tid % kScoreLanes] = sums[k];
    sync_block();
}

// y[t][b] = the score of block b, of the complete blocks that t sees, 0 for others. The key lies in the row
// of the block's last token. A block of threads per row and kScoreKeys blocks of tokens.
template <typename C, uint32_t kHeads>
RL_DEVICE void score_blocks(const args::BlockArgs& a, ScoreShared& shared) {
    const uint32_t tiles = (a.blocks + kScoreKeys - 1) / kScoreKeys,
                   end = lesser(a.end_row, a.step->rows) * tiles;
    for (uint32_t n = a.first_row * tiles + block_index().x; n < end; n += grid_blocks()) {
        const uint32_t row = n / tiles, first = n % tiles * kScoreKeys;
        const uint32_t complete = lesser((token_of(a.step, a.cache, row) + 1) / a.ratio, a.blocks);
        if (first < complete) score_keys<C, kHeads>(a, row, first, complete, shared);
        for (uint32_t i = thread_index(); i < lesser(kScoreKeys, a.blocks - first); i += kThreads) {
            float sum = 0.0f;
            for (uint32_t part = 0; part < kScoreParts && first + i < complete; ++part)
                sum += shared.sums[part * kScoreKeys + i];
            a.y[size_t(row) * a.blocks + first + i] = sum;
        }
        sync_block();
    }
}

template <typename C>
RL_DEVICE void block_scores(const args::BlockArgs& a) {
    RL_SHARED ScoreShared shared;
    constexpr bool kEights = C::kGroup % 8 == 0;  // heads are multiples of eight
    if (!kEights && a.cache.head_dim % 8 != 0)
        score_blocks<any_size<C>, kMostScoreHeads>(a, shared);
    else if (a.heads <= 2 * kScoreParts)
        score_blocks<C, 2>(a, shared);
    else
        score_blocks<C, kMostScoreHeads>(a, shared);
}

constexpr uint32_t kMostBlockHead = 512;  // elements of a query in shared memory, and a few in registers

struct BlockShared {
    float query[kMostBlockHead];
    float chances[kThreads];
    uint32_t places[kThreads];  // of a tile's keys in the cache
    float parts[kWaves];
};

// How many blocks a row has chosen: those that it has not are behind them.
RL_DEVICE uint32_t chosen_of(const args::BlockArgs& a, uint32_t row, float* parts) {
    float some = 0.0f;
    RL_FEW_TURNS
    for (uint32_t i = thread_index(); i < a.blocks; i += kThreads)
        some += a.chosen[size_t(row) * a.blocks + i] >= 0.0f ? 1.0f : 0.0f;
    return uint32_t(block_sum(some, parts));
}

// Of a row and head, over tiles of as many keys as a block has threads; of what they see, a thread sums up
// its own elements.
template <typename C>
RL_DEVICE void attend_blocks(const args::BlockArgs& a, uint32_t row, uint32_t head, BlockShared& shared) {
    constexpr uint32_t kOwn = kMostBlockHead / kThreads;
    const Cache& c = a.cache;
    const uint32_t tid = thread_index(), dims = c.head_dim, kv_head = head / (a.heads / c.kv_heads);
    const auto keys = C::head(c, Side::keys, kv_head), values = C::head(c, Side::values, kv_head);
    const uint32_t token = token_of(a.step, c, row), complete = (token + 1) / a.ratio * a.ratio;
    const uint32_t in_blocks = chosen_of(a, row, shared.parts) * a.ratio,
                   all = in_blocks + token + 1 - complete;
    const float* chosen = a.chosen + size_t(row) * a.blocks;
    const size_t own = (size_t(row) * a.heads + head) * dims;
    RL_FEW_TURNS
    for (uint32_t i = tid; i < dims; i += kThreads) shared.query[i] = a.q[own + i];
    float top = -__builtin_inff(), total = 0.0f, sums[kOwn] = {};
    for (uint32_t base = 0; base < all; base += kThreads) {
        sync_block();  // the query is there, and the tile before is done
        const uint32_t key = base + tid, count = lesser(kThreads, all - base);
        float score = -__builtin_inff();
        if (key < all) {
            const uint32_t seen = key < in_blocks ? uint32_t(chosen[key / a.ratio]) * a.ratio + key % a.ratio
                                                  : complete + key - in_blocks;
            const uint32_t place = row_of_token(c, row, seen);
            shared.places[tid] = place;
            score = 0.0f;
            RL_UNROLL_BY(4)
            for (uint32_t e = 0; e < dims; ++e)
                score = fused(shared.query[e], C::value(keys, place, e), score);
            score *= a.scale;
        }
        const float raised = larger(block_max(score, shared.parts), top), correction = exp_of(top - raised);
        top = raised;
        const float chance = key < all ? exp_of(score - top) : 0.0f;
        shared.chances[tid] = chance;
        total = total * correction + block_sum(chance, shared.parts);
        RL_UNROLL
        for (uint32_t i = 0; i < kOwn; ++i) {
            const uint32_t element = i * kThreads + tid;
            if (element >= dims) continue;
            float sum = sums[i] * correction;
            RL_UNROLL_BY(4)
            for (uint32_t t = 0; t < count; ++t)
                sum = fused(shared.chances[t], C::value(values, shared.places[t], element), sum);
            sums[i] = sum;
        }
    }
    RL_UNROLL
    for (uint32_t i = 0; i < kOwn; ++i)
        if (i * kThreads + tid < dims) a.y[own + i * kThreads + tid] = sums[i] / total;
}

template <typename C>
RL_DEVICE void block_attention(const args::BlockArgs& a) {
    RL_SHARED BlockShared shared;
    const uint32_t rows = lesser(a.end_row, a.step->rows), end = rows * a.heads;
    for (uint32_t i = a.first_row * a.heads + block_index().x; i < end; i += grid_blocks()) {
        attend_blocks<C>(a, i / a.heads, i % a.heads, shared);
        sync_block();
    }
}

}  // namespace redline::hip
