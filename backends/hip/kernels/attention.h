// Causal attention over a cache, and what fills it.
#pragma once

#include "kernels/attention_few.h"
#include "kernels/attention_many.h"
#include "kernels/block_few.h"
#include "kernels/blocks.h"
#include "kernels/cache_mixed.h"
#include "kernels/entries.h"
#include "kernels/latent.h"
#include "kernels/latent_many.h"
#include "kernels/turn.h"

namespace redline::hip {

// cache[head][row of the token] = k, v. A block per row and kv head.
template <typename C>
RL_DEVICE void kv_store(const args::StoreArgs& a) {
    const Cache& c = a.cache;
    const uint32_t row = block_index().x / c.kv_heads, head = block_index().x % c.kv_heads;
    if (row >= a.step->rows) return;
    const float *k = a.k + size_t(block_index().x) * c.head_dim,
                *v = a.v + size_t(block_index().x) * c.head_dim;
    const size_t at = place_in_cache(c, head, a.step->position, row);
    for (uint32_t i = thread_index() * C::kGroup; i < c.head_dim; i += kThreads * C::kGroup) {
        C::store(c, Side::keys, at, i, [&](uint32_t e) { return k[e]; });
        C::store(c, Side::values, at, i, [&](uint32_t e) { return v[e]; });
    }
}

// Per-head norms of q and k where given, the rotation of both, and k and v into the cache. A wave per row and
// head: first those of q, then of k, then of v. The slots hold the turned heads afterwards.
template <typename C>
RL_DEVICE void rope_store(const args::RopeStoreArgs& a) {
    RL_SHARED float heads[kWaves][args::kMostHeadDim];
    float* head = heads[wave_index()];
    const Cache& c = a.cache;
    const uint32_t all = a.heads + 2 * c.kv_heads, end = a.step->rows * all, position = a.step->position;
    let_next_start();
    wait_for_inputs();  // the host wrote the step
    for (uint32_t i = block_index().x * kWaves + wave_index(); i < end; i += grid_blocks() * kWaves) {
        const uint32_t row = i / all, index = i % all, kv_head = (index - a.heads) % c.kv_heads;
        const size_t kv = (size_t(row) * c.kv_heads + kv_head) * c.head_dim;
        const size_t at = place_in_cache(c, kv_head, position, row);
        if (index < a.heads) {
            float* slot = a.q + (size_t(row) * a.heads + index) * c.head_dim;
            turn_head(a.turn, false, row, slot, c.head_dim,
                      [&](uint32_t e, float value) { slot[e] = value; });
        } else if (index < a.heads + c.kv_heads) {
            float* slot = a.k + kv;
            turn_head(a.turn, true, row, slot, c.head_dim,
                      [&](uint32_t e, float value) { slot[e] = head[e] = value; });
            if constexpr (!kMixed<C>) store_head<C>(c, Side::keys, at, head);
        } else {
            copy_head(a.v + kv, c.head_dim, head);
            if constexpr (!kMixed<C>) store_head<C>(c, Side::values, at, head);
        }
        // The code for all types stands there once, and CDNA has too few scalar registers for what it reads.
        if constexpr (kMixed<C>)
            if (index >= a.heads)
                store_head<C>(args_in_lanes(a).cache,
                              index < a.heads + c.kv_heads ? Side::keys : Side::values, at, head);
        sync_wave();
    }
}

}  // namespace redline::hip

#define RL_FEW_KERNEL(stem, blocks, type, cache, queries, dims)                              \
    RL_EARLY_KERNEL(256, blocks, stem##_##queries##_##dims##_##cache, args::AttentionArgs) { \
        attention_few<type, queries, dims>(args);                                            \
    }
#define RL_FEW_KERNELS(type, cache, dims)                                   \
    RL_FEW_KERNEL(attention_few, few_blocks(1, dims), type, cache, 1, dims) \
    RL_FEW_KERNEL(attention_few, few_blocks(2, dims), type, cache, 2, dims) \
    RL_FEW_KERNEL(attention_few, few_blocks(4, dims), type, cache, 4, dims)
#define RL_ANY_KERNELS(type, cache)                      \
    RL_FEW_KERNEL(attention_any, 1, type, cache, 4, 64)  \
    RL_FEW_KERNEL(attention_any, 1, type, cache, 4, 256) \
    RL_FEW_KERNEL(attention_any, 1, type, cache, 2, 512)
#define RL_MANY_KERNEL(type, cache, dims)                                           \
    RL_KERNEL(kManyThreads, attention_many_##dims##_##cache, args::AttentionArgs) { \
        attention_many<type, dims>(args);                                           \
    }
#define RL_LATENT_KERNEL(name, type, cache, queries, rank)                             \
    RL_KERNEL(kLatentThreads, name##_##queries##_##rank##_##cache, args::LatentArgs) { \
        latent_attention<type, queries, rank>(args);                                   \
    }
#define RL_LATENT_KERNELS(cache, rank)                                 \
    RL_LATENT_KERNEL(latent_attention, cache_##cache, cache, 4, rank)  \
    RL_LATENT_KERNEL(latent_attention, cache_##cache, cache, 8, rank)  \
    RL_LATENT_KERNEL(latent_attention, cache_##cache, cache, 16, rank) \
    RL_LATENT_KERNEL(latent_attention_any, any_width<cache_##cache>, cache, 8, rank)
#define RL_ENTRY_KERNEL(name, type, cache, queries, rank)                             \
    RL_KERNEL(kLatentThreads, name##_##queries##_##rank##_##cache, args::EntryArgs) { \
        entry_attention<type, queries, rank>(args);                                   \
    }
#define RL_ENTRY_KERNELS(cache, rank)                               \
    RL_ENTRY_KERNEL(entry_attention, cache_##cache, cache, 4, rank) \
    RL_ENTRY_KERNEL(entry_attention, cache_##cache, cache, 8, rank) \
    RL_ENTRY_KERNEL(entry_attention, cache_##cache, cache, 16, rank)
#define RL_BLOCK_FEW_KERNEL(cache, queries, dims)                                \
    RL_KERNEL(256, block_few_##queries##_##dims##_##cache, args::BlockFewArgs) { \
        block_few<cache_##cache, queries, dims>(args);                           \
    }
#define RL_BLOCK_FEW_KERNELS(cache)    \
    RL_BLOCK_FEW_KERNEL(cache, 8, 64)  \
    RL_BLOCK_FEW_KERNEL(cache, 8, 128) \
    RL_BLOCK_FEW_KERNEL(cache, 4, 256) \
    RL_BLOCK_FEW_KERNEL(cache, 2, 512)
// Kernels of keys and values, which are not latents.
#define RL_HEAD_KERNELS(cache)                                                     \
    RL_KERNEL(128, kv_store_##cache, args::StoreArgs) {                            \
        kv_store<cache_##cache>(args);                                             \
    }                                                                              \
    RL_EARLY_KERNEL(128, 1, rope_store_##cache, args::RopeStoreArgs) {             \
        rope_store<cache_##cache>(args);                                           \
    }                                                                              \
    RL_FEW_KERNELS(cache_##cache, cache, 64)                                       \
    RL_FEW_KERNEL(attention_few, few_blocks(8, 64), cache_##cache, cache, 8, 64)   \
    RL_FEW_KERNELS(cache_##cache, cache, 128)                                      \
    RL_FEW_KERNEL(attention_few, few_blocks(8, 128), cache_##cache, cache, 8, 128) \
    RL_FEW_KERNELS(cache_##cache, cache, 256)                                      \
    RL_FEW_KERNEL(attention_few, few_blocks(1, 512), cache_##cache, cache, 1, 512) \
    RL_FEW_KERNEL(attention_few, few_blocks(2, 512), cache_##cache, cache, 2, 512)
// Of heads that are not whole eights, which q8_0 does not have.
#define RL_ODD_KERNELS(cache)                                                     \
    RL_ANY_KERNELS(any_size<cache_##cache>, cache)                                \
    RL_KERNEL(128, block_attention_##cache, args::BlockArgs) {                    \
        block_attention<cache_##cache>(args);                                     \
    }                                                                             \
    RL_ENTRY_KERNEL(entry_attention_any, any_width<cache_##cache>, cache, 8, 128) \
    RL_ENTRY_KERNEL(entry_attention_any, any_width<cache_##cache>, cache, 8, 512)
#define RL_ODD_KERNELS_f32 RL_ODD_KERNELS(f32)
#define RL_ODD_KERNELS_f16 RL_ODD_KERNELS(f16)
#define RL_ODD_KERNELS_q8_0
// Of the types whose elements are no more exact than halfs.
#define RL_LATENT_MANY_KERNEL(cache, queries)                                      \
    RL_KERNEL(kLatentThreads, latent_many_##queries##_##cache, args::LatentArgs) { \
        latent_many<cache_##cache, queries>(args);                                 \
    }
#if defined(__GFX10__)  // has no matrix units: in f32 latents need fewer reads of shared memory
#define RL_LATENT_MANY_KERNELS(cache)
#elif defined(__GFX11__)  // whose lanes hold tiles twice, so that registers do for 16 queries
#define RL_LATENT_MANY_KERNELS(cache) RL_LATENT_MANY_KERNEL(cache, 16)
#else
#define RL_LATENT_MANY_KERNELS(cache) RL_LATENT_MANY_KERNEL(cache, 16) RL_LATENT_MANY_KERNEL(cache, 32)
#endif
#define RL_MANY_KERNELS_f32
#define RL_MANY_KERNELS(type, cache) \
    RL_MANY_KERNEL(type, cache, 64)  \
    RL_MANY_KERNEL(type, cache, 96)  \
    RL_MANY_KERNEL(type, cache, 128)
#define RL_MANY_KERNELS_f16 RL_LATENT_MANY_KERNELS(f16) RL_MANY_KERNELS(cache_f16, f16)
#define RL_MANY_KERNELS_q8_0 RL_LATENT_MANY_KERNELS(q8_0) RL_MANY_KERNELS(cache_q8_0, q8_0)
#define RL_CACHE_KERNELS(cache)                                                          \
    namespace redline::hip {                                                             \
    RL_HEAD_KERNELS(cache)                                                               \
    RL_ODD_KERNELS_##cache RL_KERNEL(128, latent_store_##cache, args::LatentStoreArgs) { \
        latent_store<cache_##cache>(args);                                               \
    }                                                                                    \
    RL_KERNEL(128, block_scores_##cache, args::BlockArgs) {                              \
        block_scores<cache_##cache>(args);                                               \
    }                                                                                    \
    RL_BLOCK_FEW_KERNELS(cache)                                                          \
    RL_LATENT_KERNELS(cache, 128)                                                        \
    RL_LATENT_KERNELS(cache, 512)                                                        \
    RL_ENTRY_KERNELS(cache, 128)                                                         \
    RL_ENTRY_KERNELS(cache, 512)                                                         \
    RL_MANY_KERNELS_##cache                                                              \
    }
// One module serves keys and values of all types. Latents are of one type, which has a module.
#define RL_MIXED_KERNELS                                     \
    namespace redline::hip {                                 \
    RL_HEAD_KERNELS(mixed)                                   \
    RL_ANY_KERNELS(mixed_any_size, mixed)                    \
    RL_KERNEL(128, block_attention_mixed, args::BlockArgs) { \
        block_attention<mixed_any_size>(args);               \
    }                                                        \
    RL_BLOCK_FEW_KERNELS(mixed)                              \
    RL_MANY_KERNELS(mixed_halfs, mixed)                      \
    }
