#include "plan/ops/blocks.h"

#include "plan/plan.h"

#include <algorithm>

namespace redline {

void BlockMean::list(OpFacts& f) const {
    f.that(ratio > 0, "blocks must not be empty");
    f.slot("y", y, f.width(x));
    f.that(x != y, "y must be a separate slot");
    const CacheInfo* keeps = f.cache(state);
    f.that(!keeps || keeps->state_floats == f.width(x), "the cache holds no states of this size");
    f.note(fmt::format(" {}, blocks of {}", f.width(x), ratio));
}

void BlockPool::list(OpFacts& f) const {
    const uint64_t width = f.width(y);
    f.that(ratio > 0, "blocks must not be empty");
    f.slot("x", x, width * (overlaps ? 2 : 1));
    f.slot("gate", gate, f.width(x));
    f.that(bool(bias), "bias is missing");
    f.vector("bias", bias, f.width(x) * ratio);
    f.that(x != y && gate != y, "y must be a separate slot");
    const CacheInfo* keeps = f.cache(state);
    f.that(!keeps || keeps->state_floats == state_floats(width, overlaps),
           "the cache holds no states of this size");
    f.note(fmt::format(" {}, blocks of {}", width, ratio));
    if (overlaps) f.note(" that overlap");
}

Cost BlockPool::cost(const Plan& plan, const StepShape& step) const {
    const uint64_t state_bytes = plan.cache(state).state_floats * sizeof(float);
    return {0, 2 * state_bytes, 8 * step.rows * plan.slot(x).width};
}

void BlockScores::list(OpFacts& f) const {
    f.that(ratio > 0 && heads > 0, "blocks and head counts must not be zero");
    const CacheInfo* keys = f.cache(cache);
    f.that(!keys || keys->ratio == 1 || keys->ratio == ratio, "the cache holds keys of other blocks");
    if (weights) f.slot("weights", weights, heads);
    f.that(!keys || (keys->rank > 0 && keys->rank == keys->head_dim && keys->window == 0),
           "the cache holds no keys of blocks");
    f.slot("q", q, keys ? uint64_t(heads) * keys->head_dim : 0);
    f.note(fmt::format(" {} heads of {}, blocks of {}", heads, keys ? keys->head_dim : 0, ratio));
    if (weights) f.note(" weighted");
}

Cost BlockScores::cost(const Plan& plan, const StepShape& step) const {
    const CacheInfo& keys = plan.cache(cache);
    const uint64_t blocks = step.kv_len / ratio;
    return {0, keys.row_bytes() * blocks, 2 * step.rows * blocks * heads * keys.head_dim};
}

void ChooseBlocks::list(OpFacts& f) const {
    f.that(ratio > 0, "blocks must not be empty");
    f.that(f.width(scores) > 0 && f.width(y) > 0, "there is nothing to choose");
    f.that(scores != y, "y must be a separate slot");
    f.note(fmt::format(" {}, blocks of {}", f.width(y), ratio));
}

void BlockAttention::list(OpFacts& f) const {
    f.that(shape.heads > 0 && shape.kv_heads > 0 && shape.head_dim > 0 && ratio > 0,
           "blocks and head counts must not be zero");
    f.that(shape.kv_heads == 0 || shape.heads % shape.kv_heads == 0, "heads must be a multiple of kv heads");
    const CacheInfo* keeps = f.cache(cache);
    f.that(!keeps || (shape.kv_heads == keeps->kv_heads && shape.head_dim == keeps->head_dim &&
                      keeps->rank == 0 && keeps->window == 0),
           "the cache has other heads");
    f.slot("q", q, uint64_t(shape.heads) * shape.head_dim);
    f.slot("y", y, uint64_t(shape.heads) * shape.head_dim);
    f.that(f.width(chosen) > 0, "no blocks are chosen");
    f.note(fmt::format(" {} heads of {}, {} kv, {} blocks of {}", shape.heads, shape.head_dim, shape.kv_heads,
                       f.width(chosen), ratio));
}

Cost BlockAttention::cost(const Plan& plan, const StepShape& step) const {
    const uint64_t seen = std::min<uint64_t>(step.kv_len, (uint64_t(plan.slot(chosen).width) + 1) * ratio);
    const CacheInfo& keeps = plan.cache(cache);
    // Each row chooses for itself, but cache rows that several of them see are read once.
    return {0, keeps.row_bytes() * keeps.kv_heads * std::min(step.kv_len, seen * step.rows),
            4 * step.rows * seen * shape.heads * shape.head_dim};
}

void EntryAttention::list(OpFacts& f) const {
    const CacheInfo* keeps = f.cache(cache);
    f.that(heads > 0, "head counts must not be zero");
    f.that(!keeps ||
               (keeps->rank > 0 && keeps->rank == keeps->head_dim && keeps->ratio == 1 && keeps->window > 0),
           "the cache holds no latents with a window");
    const uint64_t width = keeps ? keeps->head_dim : 0;
    f.slot("q", q, heads * width);
    f.slot("y", y, heads * width);
    f.that(q != y, "y must be a separate slot");
    f.vector("sinks", sinks, heads);
    f.note(fmt::format(" {} heads of {}, window {}", heads, width, keeps ? keeps->window : 0));
    f.that(entries || !chosen, "there are no entries to choose from");
    const CacheInfo* blocks = entries ? f.cache(entries) : nullptr;
    f.that(!blocks || !keeps ||
               (blocks->rank == width && blocks->head_dim == width && blocks->window == 0 &&
                blocks->types == keeps->types && kPageRows % blocks->ratio == 0),
           "the entries are of another kind");
    f.that(!chosen || f.width(chosen) > 0, "no blocks are chosen");
    if (blocks) f.note(fmt::format(", blocks of {}", blocks->ratio));
    if (chosen) f.note(fmt::format(", {} of them", f.width(chosen)));
    if (sinks) f.note(" +sinks");
}

Cost EntryAttention::cost(const Plan& plan, const StepShape& step) const {
    const CacheInfo& keeps = plan.cache(cache);
    uint64_t blocks = entries ? step.kv_len / plan.cache(entries).ratio : 0, read = blocks;
    if (chosen) blocks = std::min<uint64_t>(blocks, plan.slot(chosen).width);
    if (chosen) read = std::min(read, blocks * step.rows);
    const uint64_t tokens = std::min(step.kv_len, keeps.window);
    return {0, keeps.row_bytes() * (std::min(step.kv_len, tokens + step.rows - 1) + read),
            4 * step.rows * (tokens + blocks) * heads * keeps.head_dim};
}

}  // namespace redline
