#include "plan/ops/blocks.h"

#include "plan/plan.h"

#include <algorithm>

namespace redline {

void BlockMean::list(OpFacts& f) const {
    f.that(ratio > 0, "blocks must not be empty");
    f.slot("y", y, f.width(x));
    f.that(x != y, "y must be a slot of its own");
    const CacheInfo* keeps = f.cache(state);
    f.that(!keeps || keeps->state_floats == f.width(x), "the cache holds no states of this size");
    f.note(fmt::format(" {}, blocks of {}", f.width(x), ratio));
}

void BlockScores::list(OpFacts& f) const {
    f.that(ratio > 0 && heads > 0, "blocks and head counts must not be zero");
    const CacheInfo* keys = f.cache(cache);
    f.that(!keys || (keys->rank > 0 && keys->rank == keys->head_dim && keys->window == 0),
           "the cache holds no keys of blocks");
    f.slot("q", q, keys ? uint64_t(heads) * keys->head_dim : 0);
    f.note(fmt::format(" {} heads of {}, blocks of {}", heads, keys ? keys->head_dim : 0, ratio));
}

Cost BlockScores::cost(const Plan& plan, const StepShape& step) const {
    const CacheInfo& keys = plan.cache(cache);
    const uint64_t blocks = step.kv_len / ratio;
    return {0, keys.row_bytes() * blocks, 2 * step.rows * blocks * heads * keys.head_dim};
}

void ChooseBlocks::list(OpFacts& f) const {
    f.that(ratio > 0, "blocks must not be empty");
    f.that(f.width(scores) > 0 && f.width(y) > 0, "there is nothing to choose");
    f.that(scores != y, "y must be a slot of its own");
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
    // Rows of a step choose apart, but what they see of the cache is read once where it is the same.
    return {0, keeps.row_bytes() * keeps.kv_heads * std::min(step.kv_len, seen * step.rows),
            4 * step.rows * seen * shape.heads * shape.head_dim};
}

}  // namespace redline
