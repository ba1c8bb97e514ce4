#include "plan/ops/latent.h"

#include "plan/plan.h"

namespace redline {

void LatentStore::list(OpFacts& f) const {
    const CacheInfo* keeps = f.cache(cache);
    f.that(!keeps || keeps->rank > 0, "the cache holds no latents");
    if (keeps) f.note(fmt::format(" latents of {} of {}", keeps->rank, keeps->head_dim));
    f.slot("latent", latent, keeps ? keeps->rank : 0);
    if (key || !keeps || keeps->head_dim > keeps->rank)
        f.slot("key", key, keeps ? keeps->head_dim - keeps->rank : 0);
}

}  // namespace redline
