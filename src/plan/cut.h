// Plans in parts, each of which can run on another backend: what one leaves in its output is the input of the
// next.
#pragma once

#include "plan/plan.h"

namespace redline {

// A plan of its own, of some steps of a whole one and what they use.
struct PlanPart {
    Plan plan;  // with the weights and the caches of all parts of its place
    // The whole plan's that each of its own is.
    std::vector<Weight> weights;
    std::vector<Cache> caches;
};

// One part more than there are cuts, which are before the steps of these numbers, in order. All parts but the
// last have outputs of all rows, so that a step of theirs wants them all. `places` has a number for each
// part: those of one place share weights and caches; with none, each part has a place of its own. An error
// where not just one slot, of all rows, crosses a cut, or a cache is used at two places. `plan` is one that
// was not lowered.
Result<std::vector<PlanPart>> cut(const Plan& plan, const std::vector<size_t>& before,
                                  std::vector<size_t> places = {});

// Steps [first, last) that cannot be cut further.
struct Block {
    size_t first = 0, last = 0;
};
// All of a plan, in order.
std::vector<Block> blocks(const Plan& plan);

}  // namespace redline
