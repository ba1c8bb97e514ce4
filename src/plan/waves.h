// Steps that do not wait for each other may run at the same time on some devices: a wave is what runs between
// two waits.
#pragma once

#include "plan/plan.h"

namespace redline {

// Of each step how many waits there are before it, in the order of the plan, by the slots and caches that
// steps use; slots share no memory yet.
std::vector<size_t> waves_of(const Plan& plan);

// An order of the steps of each layer with the fewest waits: each step as early as what it uses is there.
// Place i is for step order[i].
std::vector<size_t> order_in_waves(const Plan& plan);

}  // namespace redline
