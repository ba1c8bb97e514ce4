// Rows of latents, for attention to them (multi-head latent attention, arXiv 2405.04434), in the absorbed
// form: the cache keeps one row per token for all heads, its latent, then the part of its key that has rope.
// All heads' keys are such rows, and the values are the latents; the matrices that lead from latents to a
// head's keys and values are applied to its query and to its result instead.
#pragma once

#include "plan/ops/facts.h"

namespace redline {

// A matrix per head: part h of y = w[h] * part h of x.
struct HeadLinear {
    static constexpr std::string_view kName = "head_linear";
    Slot x;
    Weight w;  // (heads, rows, cols)
    Slot y;
    uint32_t x_stride = 0, y_stride = 0;  // from a head to the next; at least cols and rows

    // Elements between the parts keep their values, so that y is read, too.
    Access access() const { return {{x, y}, {y}}; }
    void visit_indices(auto&& visit) { visit(x, w, y); }
    void list(OpFacts& f) const;
    Cost cost(const Plan& plan, const StepShape& shape) const;
};

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

}  // namespace redline
