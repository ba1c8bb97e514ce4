#include "plan/ops/blocks.h"

#include "plan/plan.h"

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

}  // namespace redline
