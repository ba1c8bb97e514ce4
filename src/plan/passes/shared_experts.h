// Merges shared experts into the blocks of experts that they stand beside.
#pragma once

#include "plan/plan.h"

namespace redline {

// Returns the plan with every norm, router and experts that a shared expert follows as one ExpertBlock, where
// nothing else reads the slots between them. Model files append these as separate steps, so that the experts
// can be computed on another device than the shared one. `starts` gets for each of its steps the number of
// the first one that it was made of.
Plan with_shared_experts(Plan plan, std::vector<size_t>* starts = nullptr);

}  // namespace redline
