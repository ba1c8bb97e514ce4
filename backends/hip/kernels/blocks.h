// Attention to chosen blocks, and the scores by which they are chosen, over a cache of one type.
#pragma once

#include "kernels/block_args.h"
#include "kernels/cache.h"
#include "kernels/reduce.h"

namespace redline::hip {

RL_DEVICE uint32_t token_of(const args::Step* step, const Cache& c, uint32_t row) {
    return c.places ? c.places[row].position : step->position + row;
}
// Where a token of a row's sequence lies.
RL_DEVICE uint32_t row_of_token(const Cache& c, uint32_t row, uint32_t token) {
    return row_in_cache(c.places ? c.pages + c.places[row].list : nullptr, row_in_sequence(c, token));
}

constexpr uint32_t kScoredHeads = 8;  // for which an element of a key is read once

// The sum over heads of weights[h] * max(q[h] . key, 0).
template <typename C>
RL_DEVICE float block_score(const args::BlockArgs& a, const HeadRows& keys, uint32_t row, uint32_t key) {
    const uint32_t dims = a.cache.head_dim;
    float sum = 0.0f;
    for (uint32_t head = 0; head < a.heads; head += kScoredHeads) {
        const float* q[kScoredHeads];
        float products[kScoredHeads] = {};
        RL_UNROLL
        for (uint32_t h = 0; h < kScoredHeads; ++h)
            q[h] = a.q + (size_t(row) * a.heads + lesser(head + h, a.heads - 1)) * dims;
        for (uint32_t e = 0; e < dims; ++e) {
            const float element = C::value(keys, key, e);
            RL_UNROLL
            for (uint32_t h = 0; h < kScoredHeads; ++h) products[h] = fused(q[h][e], element, products[h]);
        }
        RL_UNROLL
        for (uint32_t h = 0; h < kScoredHeads; ++h) {
            const float raised = products[h] < 0.0f ? 0.0f : products[h];  // lets NaN through
            const uint32_t own = lesser(head + h, a.heads - 1);
            const float weight = a.weights ? a.weights[size_t(row) * a.heads + own] : 1.0f;
            sum = head + h < a.heads ? fused(weight, raised, sum) : sum;
        }
    }
    return sum;
}

// y[t][b] = the score of block b, of the complete blocks that t sees, 0 for others. The key lies in the row
// of the block's last token. A thread per row and block.
template <typename C>
RL_DEVICE void block_scores(const args::BlockArgs& a) {
    const Cache& c = a.cache;
    const HeadRows keys = C::head(c, c.keys, 0);
    const size_t first = size_t(a.first_row) * a.blocks, rows = lesser(a.end_row, a.step->rows);
    each_element((rows > a.first_row ? rows - a.first_row : 0) * a.blocks, [&](size_t i) {
        const uint32_t row = uint32_t((first + i) / a.blocks), block = uint32_t((first + i) % a.blocks);
        float sum = 0.0f;
        if (block < (token_of(a.step, c, row) + 1) / a.ratio)
            sum =
                block_score<C>(a, keys, row, row_of_token(c, row, (block + 1) * a.ratio - 1) / a.row_tokens);
        a.y[first + i] = sum;
    });
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
    const HeadRows keys = C::head(c, c.keys, kv_head), values = C::head(c, c.values, kv_head);
    const uint32_t token = token_of(a.step, c, row), complete = (token + 1) / a.ratio * a.ratio;
    const uint32_t in_blocks = chosen_of(a, row, shared.parts) * a.ratio,
                   all = in_blocks + token + 1 - complete;
    const float* chosen = a.chosen + size_t(row) * a.blocks;
    const size_t own = (size_t(row) * a.heads + head) * dims;
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
