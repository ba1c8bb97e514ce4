// Plans in parts, each of which can run on another backend: what a part leaves in its output is input of
// parts behind it.
#pragma once

#include "plan/plan.h"

namespace redline {

// What an op has of a plan.
std::vector<Weight> weights_of(Op op);
std::vector<Cache> caches_of(Op op);

// A plan of its own, of some steps of a whole one and what they use.
struct PlanPart {
    Plan plan;  // with the weights and the caches of all parts of its place
    // The whole plan's that each of its own is.
    std::vector<Weight> weights;
    std::vector<Cache> caches;
    // The whole plan's slots that a row of its input has side by side, each as the last part before it that
    // leaves it did; and those of its output, unless it is the last part.
    std::vector<Slot> takes, leaves;
};

// One part more than there are cuts, which are before the steps of these numbers, in order. All parts but the
// last have outputs of all rows, so that a step of theirs wants them all. `places` has a number for each
// part: those of one place share weights and caches; with none, each part has a place of its own. An error
// where a slot of outputs alone crosses a cut, or a cache is used at two places. `plan` is one that was not
// lowered.
Result<std::vector<PlanPart>> cut(const Plan& plan, const std::vector<size_t>& before,
                                  std::vector<size_t> places = {});

// Steps [first, last) between cuts that little crosses: those between layers, and such that one slot crosses
// or what crosses between all layers. An attention is one, and a feed-forward.
struct Block {
    size_t first = 0, last = 0;
};
// All of a plan, in order; divided before the steps `also`, too, where they can be.
std::vector<Block> blocks(const Plan& plan, const std::vector<size_t>& also = {});

}  // namespace redline
