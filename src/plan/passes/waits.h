// Steps that do not wait for each other run at the same time on some devices: which have to wait, and an
// order in which few do.
#pragma once

#include "plan/plan.h"

namespace redline {

// Of each step how many waits there are up to it, in the order of the plan, by the slots and caches that
// steps use, as if slots shared no memory. Steps with the same number run at the same time.
std::vector<size_t> waits_before(const Plan& plan);

// Whether step i is the first of a layer that waits for those before it.
bool begins_waiting_layer(const Plan& plan, size_t i);

// An order of the steps of each layer with the fewest waits: each step as early as what it uses is there.
// Place i is for step order[i].
std::vector<size_t> order_of_fewest_waits(const Plan& plan);

}  // namespace redline
