// Rows of latents, for attention to them (multi-head latent attention, arXiv 2405.04434), in the absorbed
// form: the cache keeps one row per token for all heads, its latent, then the part of its key that has rope.
// All heads' keys are such rows, and the values are the latents; the matrices that lead from latents to a
// head's keys and values are applied to its query and to its result instead.
#pragma once

#include "plan/ops/facts.h"

namespace redline {

struct LatentStore {  // cache[position of row] = latent, then key
    static constexpr std::string_view kName = "latent_store";
    Slot latent;  // (rows, rank)
    Slot key;     // (rows, the rest of the cache's rows); absent where there is none
    Cache cache;

    Access access() const {
        return key ? Access{{latent, key}, {}, false, true} : Access{{latent}, {}, false, true};
    }
    void visit_indices(auto&& visit) { visit(latent, key, cache); }
    void list(OpFacts& f) const;
};

#define RL_LATENT_OPS(CORE, FUSED) CORE(LatentStore)

}  // namespace redline
