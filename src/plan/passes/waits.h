// Some devices run steps that do not depend on each other at the same time. This finds the steps that have to
// wait, and an order with few waits.
#pragma once

#include "plan/plan.h"

namespace redline {

// For each step the number of waits up to it, in the order of the plan, by the slots and caches that steps
// use, as if slots shared no memory. Steps with the same number run at the same time.
std::vector<size_t> waits_before(const Plan& plan);

// True when step i is the first of a layer that waits for those before it.
bool begins_waiting_layer(const Plan& plan, size_t i);

// An order of the steps of each layer with the fewest waits: each step as soon as its inputs are there. Place
// i is for step order[i].
std::vector<size_t> order_of_fewest_waits(const Plan& plan);

}  // namespace redline
