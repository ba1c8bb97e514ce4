// Causal attention over a cache of one type, and what fills it.
#pragma once

#include "kernels/cache.h"
#include "kernels/reduce.h"

namespace redline::hip {

// cache[head][position] = k, v. A block per row and kv head.
template <typename C>
RL_DEVICE void kv_store(const args::StoreArgs& a) {
    const Cache& c = a.cache;
    const uint32_t row = block_index().x / c.kv_heads, head = block_index().x % c.kv_heads;
    if (row >= a.step->rows) return;
    const float *k = a.k + size_t(block_index().x) * c.head_dim,
                *v = a.v + size_t(block_index().x) * c.head_dim;
    const size_t at = head * c.capacity + a.step->position + row;
    for (uint32_t i = thread_index() * C::kGroup; i < c.head_dim; i += kThreads * C::kGroup) {
        C::store(c, c.keys, at, i, [&](uint32_t e) { return k[e]; });
        C::store(c, c.values, at, i, [&](uint32_t e) { return v[e]; });
    }
}

// Per-head norms of q and k where given, the rotation of both, and k and v into the cache. A block per row
// and head: first those of q, then those of k with their v. The slots hold the turned heads afterwards.
template <typename C>
RL_DEVICE void rope_store(const args::RopeStoreArgs& a) {
    RL_SHARED float head[args::kMostHeadDim];
    RL_SHARED float parts[kWaves];
    const Cache& c = a.cache;
    const uint32_t all = a.heads + c.kv_heads, row = block_index().x / all, index = block_index().x % all;
    if (row >= a.step->rows) return;
    const bool is_key = index >= a.heads;
    const size_t kv_source = (size_t(row) * c.kv_heads + index - a.heads) * c.head_dim;
    float* from = is_key ? a.k + kv_source : a.q + (size_t(row) * a.heads + index) * c.head_dim;
    float squares = 0.0f;
    for (uint32_t i = thread_index(); i < c.head_dim; i += kThreads) {
        head[i] = from[i];
        squares = fused(from[i], from[i], squares);
    }
    if (const float* gain = is_key ? a.k_gain : a.q_gain) {
        const float mean = block_sum(squares, parts) / float(c.head_dim);
        const float scale = 1.0f / root_of(mean + (is_key ? a.k_eps : a.q_eps));
        for (uint32_t i = thread_index(); i < c.head_dim; i += kThreads) head[i] = head[i] * scale * gain[i];
    }
    sync_block();
    for (uint32_t pair = thread_index(); pair < a.pairs; pair += kThreads) {
        const uint32_t first = a.half_split ? pair : 2 * pair,
                       second = a.half_split ? pair + a.pairs : first + 1;
        const float* turn = a.table + size_t(row) * 2 * a.pairs + pair;
        const float cosine = turn[0], sine = turn[a.pairs], x = head[first], y = head[second];
        head[first] = x * cosine - y * sine;
        head[second] = x * sine + y * cosine;
    }
    sync_block();
    for (uint32_t i = thread_index(); i < c.head_dim; i += kThreads) from[i] = head[i];
    if (!is_key) return;
    const size_t at = (index - a.heads) * c.capacity + a.step->position + row;
    for (uint32_t i = thread_index() * C::kGroup; i < c.head_dim; i += kThreads * C::kGroup) {
        C::store(c, c.keys, at, i, [&](uint32_t e) { return head[e]; });
        C::store(c, c.values, at, i, [&](uint32_t e) { return a.v[kv_source + e]; });
    }
}

constexpr uint32_t kKeyTile = 128;  // keys whose scores are held at a time

// What a block of attention shares: kQueries queries and their weights for one tile of keys.
template <int kQueries, uint32_t kDims>
struct AttentionShared {
    float queries[kQueries * kDims];
    float chances[kQueries * kKeyTile];
    float tops[kQueries], totals[kQueries], corrections[kQueries];
    uint32_t begins[kQueries], ends[kQueries];  // keys that a query sees
};

struct Queries {
    uint32_t group;  // heads that share a kv head
    uint32_t first;  // of this block
    uint32_t kv_head;
    uint32_t first_row;
    RL_DEVICE uint32_t row(uint32_t i) const { return first_row + (first + i) / group; }
    RL_DEVICE uint32_t head(uint32_t i) const { return kv_head * group + (first + i) % group; }
};

template <typename C, int kQueries, uint32_t kDims>
RL_DEVICE void score_tile(const args::AttentionArgs& a, uint32_t kv_head, uint32_t base, uint32_t end,
                          AttentionShared<kQueries, kDims>& shared) {
    const Cache& c = a.cache;
    for (uint32_t tile = thread_index(); tile < kKeyTile; tile += kThreads) {
        const uint32_t key = base + tile;
        float scores[kQueries] = {};
        if (key < end)
            for (uint32_t d = 0; d < c.head_dim; ++d) {
                const float k = C::value(c, c.keys, kv_head * c.capacity + key, d);
                RL_UNROLL
                for (uint32_t i = 0; i < kQueries; ++i)
                    scores[i] = fused(k, shared.queries[i * kDims + d], scores[i]);
            }
        RL_UNROLL
        for (uint32_t i = 0; i < kQueries; ++i) {
            float score = scores[i] * a.scale;
            if (a.softcap > 0.0f) {
                const float x = score / a.softcap, e = exp_of(-2.0f * __builtin_fabsf(x)),
                            t = (1.0f - e) / (1.0f + e);
                score = a.softcap * (x < 0.0f ? -t : t);
            }
            const bool seen = key < end && key >= shared.begins[i] && key < shared.ends[i];
            shared.chances[i * kKeyTile + tile] = seen ? score : -kInfinity;
        }
    }
}

// Turns the tile's scores into weights under the running maximum.
template <int kQueries, uint32_t kDims>
RL_DEVICE void weigh_tile(AttentionShared<kQueries, kDims>& shared) {
    for (uint32_t i = wave_index(); i < kQueries; i += kWaves) {
        float* chances = shared.chances + i * kKeyTile;
        float top = -kInfinity;
        for (uint32_t t = lane_index(); t < kKeyTile; t += kWave) top = larger(chances[t], top);
        const float before = shared.tops[i], now = larger(before, wave_max(top));
        float sum = 0.0f;
        for (uint32_t t = lane_index(); t < kKeyTile; t += kWave) {
            // Nothing seen yet: infinity minus infinity must not become NaN, a NaN score must stay one.
            const float p = chances[t] == -kInfinity ? 0.0f : exp_of(chances[t] - now);
            chances[t] = p;
            sum += p;
        }
        sum = wave_sum(sum);
        sync_wave();
        if (lane_index() == 0) {
            shared.corrections[i] = before == -kInfinity ? 0.0f : exp_of(before - now);
            shared.tops[i] = now;
            shared.totals[i] = shared.totals[i] * shared.corrections[i] + sum;
        }
    }
}

// A block takes kQueries queries (row, head) that share a kv head and one of `splits` shares of the keys: x
// over splits, y over groups of queries, z over kv heads. One key per thread for the scores, one dimension
// per thread for the values; the maximum is kept running over tiles of keys. With one split the result goes
// to y, else maximum, sum and weighted values go to `partials` for combine().
template <typename C, int kQueries, uint32_t kDims>
RL_DEVICE void attention(const args::AttentionArgs& a) {
    RL_SHARED AttentionShared<kQueries, kDims> shared;
    constexpr uint32_t kColumns = (kDims + kThreads - 1) / kThreads;  // of one thread
    const Cache& c = a.cache;
    const uint32_t dims = c.head_dim, rows = a.step->rows;
    const Queries which = {a.heads / c.kv_heads, block_index().y * kQueries, block_index().z, a.first_row};
    if (which.row(0) >= rows) return;
    const uint32_t last_row = lesser(which.row(kQueries - 1), rows - 1),
                   end = a.step->position + last_row + 1;
    const uint32_t oldest = a.step->position + which.row(0) + 1;
    const uint32_t begin = a.window > 0 && oldest > a.window ? oldest - a.window : 0;
    const uint32_t share = ((end - begin + a.splits - 1) / a.splits + 31) / 32 * 32;
    const uint32_t from = lesser(begin + block_index().x * share, end), to = lesser(from + share, end);

    for (uint32_t i = thread_index(); i < kQueries * kDims; i += kThreads) {
        const uint32_t n = i / kDims, d = i % kDims;
        shared.queries[i] = d < dims && which.row(n) < rows
                                ? a.q[(size_t(which.row(n)) * a.heads + which.head(n)) * dims + d]
                                : 0.0f;
    }
    for (uint32_t i = thread_index(); i < kQueries; i += kThreads) {
        const uint32_t row = which.row(i), seen = a.step->position + row + 1;
        shared.ends[i] = row < rows ? seen : 0;
        shared.begins[i] = a.window > 0 && seen > a.window ? seen - a.window : 0;
        shared.tops[i] = -kInfinity;
        shared.totals[i] = 0.0f;
    }
    float sums[kColumns][kQueries] = {};
    for (uint32_t base = from; base < to; base += kKeyTile) {
        sync_block();
        score_tile<C, kQueries, kDims>(a, which.kv_head, base, to, shared);
        sync_block();
        weigh_tile<kQueries, kDims>(shared);
        sync_block();
        RL_UNROLL
        for (uint32_t n = 0; n < kColumns; ++n) RL_UNROLL
        for (uint32_t i = 0; i < kQueries; ++i) sums[n][i] *= shared.corrections[i];
        const uint32_t count = lesser(kKeyTile, to - base);
        for (uint32_t j = 0; j < count; ++j) {
            const size_t at = which.kv_head * c.capacity + base + j;
            RL_UNROLL
            for (uint32_t n = 0; n < kColumns; ++n) {
                if (n * kThreads >= dims) break;
                // Beyond the last dimension its sum is made again, and not used.
                const float v = C::value(c, c.values, at, lesser(thread_index() + n * kThreads, dims - 1));
                RL_UNROLL
                for (uint32_t i = 0; i < kQueries; ++i)
                    sums[n][i] = fused(shared.chances[i * kKeyTile + j], v, sums[n][i]);
            }
        }
    }
    sync_block();
    RL_UNROLL
    for (uint32_t i = 0; i < kQueries; ++i) {
        const uint32_t row = which.row(i), head = which.head(i);
        if (row >= rows) continue;
        const size_t query = size_t(row) * a.heads + head;
        float total = shared.totals[i], factor = 1.0f;
        if (a.splits == 1 && a.sinks) {
            const float most = larger(shared.tops[i], a.sinks[head]);
            factor = exp_of(shared.tops[i] - most);
            total = total * factor + exp_of(a.sinks[head] - most);
        }
        float* partial = a.partials + (query * a.splits + block_index().x) * (dims + 2);
        RL_UNROLL
        for (uint32_t n = 0; n < kColumns; ++n) {
            const uint32_t d = thread_index() + n * kThreads;
            if (d >= dims) continue;
            if (a.splits == 1)
                a.y[query * dims + d] = sums[n][i] * factor / total;
            else
                partial[2 + d] = sums[n][i];
        }
        if (a.splits > 1 && thread_index() == 0) {
            partial[0] = shared.tops[i];
            partial[1] = total;
        }
    }
}

}  // namespace redline::hip

#define RL_ATTENTION_KERNEL(cache, queries, dims)                                 \
    RL_KERNEL(128, attention_##queries##_##dims##_##cache, args::AttentionArgs) { \
        attention<cache_##cache, queries, dims>(args);                            \
    }
#define RL_ATTENTION_KERNELS(cache, dims) \
    RL_ATTENTION_KERNEL(cache, 1, dims)   \
    RL_ATTENTION_KERNEL(cache, 2, dims)   \
    RL_ATTENTION_KERNEL(cache, 4, dims)
#define RL_CACHE_KERNELS(cache)                               \
    namespace redline::hip {                                  \
    RL_KERNEL(128, kv_store_##cache, args::StoreArgs) {       \
        kv_store<cache_##cache>(args);                        \
    }                                                         \
    RL_KERNEL(128, rope_store_##cache, args::RopeStoreArgs) { \
        rope_store<cache_##cache>(args);                      \
    }                                                         \
    RL_ATTENTION_KERNEL(cache, 8, 128)                        \
    RL_ATTENTION_KERNELS(cache, 128)                          \
    RL_ATTENTION_KERNELS(cache, 256)                          \
    RL_ATTENTION_KERNELS(cache, 512)                          \
    }
