// The reference of attention on latents.
#include "reference/reference_product.h"

#include <algorithm>

namespace redline {

void Reference::eval(const LatentStore& op) {
    const size_t rank = width(op.latent), rest = op.key ? width(op.key) : 0, size = rank + rest;
    for (size_t row = 0; row < params_.tokens.size(); ++row) {
        std::vector<Bounded> whole;
        const auto add = [&](Slot s, size_t count) {
            const Bounded* const from = slots_[size_t(s.index)].data() + row * count;
            whole.insert(whole.end(), from, from + count);
        };
        add(op.latent, rank);
        if (op.key) add(op.key, rest);
        Bounded* const to =
            keys_[size_t(op.cache.index)].data() + (begin_of(row) + params_.rows[row].position) * size;
        for (size_t i = 0; i < size; ++i) to[i] = cached(whole, i, plan_.cache(op.cache).types.keys);
    }
}

}  // namespace redline
