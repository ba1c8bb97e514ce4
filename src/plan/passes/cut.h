// Cuts a plan into parts, each of which can run on another backend: the output of a part is input of parts
// behind it.
#pragma once

#include "plan/plan.h"

namespace redline {

// The weights and caches that an op names.
std::vector<Weight> weights_of(Op op);
std::vector<Cache> caches_of(Op op);

// A complete plan of some steps of a whole one, with the weights and caches that they use.
struct PlanPart {
    Plan plan;  // with the weights and the caches of all parts of its place
    // For each weight and cache of the part: its index in the whole plan.
    std::vector<Weight> weights;
    std::vector<Cache> caches;
    // Slots of the whole plan: those that a row of the part's input has side by side, each as written by the
    // last earlier part that leaves it; and those of its output, unless it is the last part.
    std::vector<Slot> takes, leaves;
};

// The plan with blocks of experts as their parts where a shared expert is among them, so that it can be on
// another device than the others. With `cuts`, numbers of steps as a plan has them that is divided so, only
// the blocks that a cut is within; the numbers become those of the plan's steps.
Plan divided(const Plan& plan, std::vector<size_t>* cuts = nullptr);

// Makes one part more than there are cuts, which are before the steps of these numbers, in order. All parts
// but the last output all rows, so that a step of theirs must ask for all. `places` has a number for each
// part: parts of one place share weights and caches; with none, each part is a separate place. An error where
// a slot of outputs alone crosses a cut, or a cache is used at two places. `plan` must not have been lowered.
Result<std::vector<PlanPart>> cut(const Plan& plan, const std::vector<size_t>& before,
                                  std::vector<size_t> places = {});

// A whole plan as a further part at the place of another one, whose weights and caches come first; it names
// caches as the plan does that this was cut from. `same_weights`: and weights; else those of all parts stay
// as they are in `plan`.
PlanPart beside(const Plan& plan, const PlanPart& place, bool same_weights);

// Steps [first, last) between cuts that few slots cross: cuts between layers, and cuts that one slot crosses
// or the same slots as between all layers. An attention is such a block, and a feed-forward.
struct Block {
    size_t first = 0, last = 0;
};
// All blocks of a plan, in order; divided before the steps `also`, too, where they can be.
std::vector<Block> blocks(const Plan& plan, const std::vector<size_t>& also = {});

}  // namespace redline
