// Plans in parts, each of which can run on another backend: what one leaves in its output is the input of the
// next.
#pragma once

#include "plan/plan.h"

namespace redline {

// A plan of its own, of some steps of a whole one and what they use.
struct PlanPart {
    Plan plan;
    // The whole plan's that each of its own is.
    std::vector<Weight> weights;
    std::vector<Cache> caches;
};

// One part more than there are cuts, which are before the steps of these numbers, in order. All parts but the
// last have outputs of all rows, so that a step of theirs wants them all. An error where not just one slot,
// of all rows, crosses a cut, or a cache is used on both sides. `plan` is one that was not lowered.
Result<std::vector<PlanPart>> cut(const Plan& plan, const std::vector<size_t>& before);

}  // namespace redline
