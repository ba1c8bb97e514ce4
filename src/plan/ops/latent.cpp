#include "plan/ops/latent.h"

#include "plan/plan.h"

#include <algorithm>

namespace redline {

void HeadLinear::list(OpFacts& f) const {
    const Shape one = f.matrix("w", w);
    f.that(x_stride >= one.cols && y_stride >= one.rows, "the parts of heads overlap");
    f.slot("x", x, one.count * x_stride);
    f.slot("y", y, one.count * y_stride);
    f.that(x != y, "y must be a separate slot");
    f.note(fmt::format(" of {} heads", one.count));
}

Cost HeadLinear::cost(const Plan& plan, const StepShape& shape) const {
    const Tensor& tensor = plan.weight(w).tensor;
    return {tensor.bytes(), 0, 2 * shape.rows * tensor.shape.elements()};
}

static void list_latents(OpFacts& f, Cache index) {
    const CacheInfo* cache = f.cache(index);
    f.that(!cache || cache->rank > 0, "the cache holds no latents");
    if (cache) f.note(fmt::format(" latents of {} of {}", cache->rank, cache->head_dim));
}

void LatentStore::list(OpFacts& f) const {
    list_latents(f, cache);
    const CacheInfo* keeps = f.cache(cache);
    f.slot("latent", latent, keeps ? keeps->rank : 0);
    if (key || !keeps || keeps->head_dim > keeps->rank)
        f.slot("key", key, keeps ? keeps->head_dim - keeps->rank : 0);
}

void LatentAttention::list(OpFacts& f) const {
    list_latents(f, cache);
    const CacheInfo* keeps = f.cache(cache);
    f.that(heads > 0, "head counts must not be zero");
    f.slot("q", q, keeps ? uint64_t(heads) * keeps->head_dim : 0);
    f.slot("y", y, keeps ? uint64_t(heads) * keeps->rank : 0);
    f.note(fmt::format(", {} heads", heads));
}

Cost LatentAttention::cost(const Plan& plan, const StepShape& step) const {
    const CacheInfo& keeps = plan.cache(cache);
    const uint64_t skipped = step.rows * (step.rows - 1) / 2, all = step.rows * step.kv_len;
    return {0, keeps.row_bytes() * step.kv_len,
            2 * (all - std::min(skipped, all)) * heads * (keeps.head_dim + keeps.rank)};
}

}  // namespace redline
