// The rotations around ops on caches of few bits. A rotated key meets a rotated query, so that scores stay
// what they are, and the weighted sum of rotated values is rotated back. What stands out in a head is spread
// over all its elements, and blocks with one large element are what few bits lose most of.
//
// They are separate ops of the plan: stores and attention need not know of them on any backend. Keys come
// between rope and store, so that fused ops on such caches are taken apart while they are recorded.
#include "plan/plan.h"

namespace redline {

Slot PlanBuilder::rotated(Slot x, uint32_t width) {
    if (width == 0) return x;
    const Slot y = slot(plan_.slot(x).width, plan_.slot(x).of_outputs);
    append(Hadamard{x, width, y});
    return y;
}

bool PlanBuilder::append_rotated(const Op& op) {
    if (has_rotations_) return false;
    const auto rotates = [&](Cache cache) { return cache && plan_.cache(cache).rotates(); };
    if (const auto* o = std::get_if<Attend>(&op)) return rotates(o->store.cache) && o->decompose(*this);
    if (const auto* o = std::get_if<RopeStore>(&op)) return rotates(o->cache) && o->decompose(*this);
    if (const auto* o = std::get_if<KvStore>(&op)) {
        if (!rotates(o->cache)) return false;
        const CacheInfo cache = plan_.cache(o->cache);
        const Slot k = rotated(o->k, cache.key_rotation()), v = rotated(o->v, cache.value_rotation());
        push(KvStore{k, v, o->cache, o->shape});
        return true;
    }
    if (const auto* o = std::get_if<Attention>(&op)) {
        if (!rotates(o->cache)) return false;
        Attention attention = *o;
        const CacheInfo cache = plan_.cache(attention.cache);
        attention.q = rotated(attention.q, cache.key_rotation());
        push(attention);
        if (cache.value_rotation() > 0) push(Hadamard{attention.y, cache.value_rotation(), attention.y});
        return true;
    }
    return false;
}

}  // namespace redline
