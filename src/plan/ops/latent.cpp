#include "plan/ops/latent.h"

#include "plan/plan.h"

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

void LatentStore::list(OpFacts& f) const {
    const CacheInfo* keeps = f.cache(cache);
    f.that(!keeps || keeps->rank > 0, "the cache holds no latents");
    if (keeps) f.note(fmt::format(" latents of {} of {}", keeps->rank, keeps->head_dim));
    f.slot("latent", latent, keeps ? keeps->rank : 0);
    if (key || !keeps || keeps->head_dim > keeps->rank)
        f.slot("key", key, keeps ? keeps->head_dim - keeps->rank : 0);
}

}  // namespace redline
