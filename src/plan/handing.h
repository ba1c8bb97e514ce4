// The rotation of heads that attention does by itself instead of waiting for a launch of its own.
#pragma once

#include "plan/plan.h"

namespace redline {

// Whether a step from number `first` on, or the host, reads what the slot holds before it.
bool read_later(const Plan& plan, size_t first, Slot slot);

// The RopeStore right before an attention, steps[attention], which that can do by itself: of its layer and
// queries, and nobody reads q or k afterwards. Null when there is none.
const RopeStore* turned_by(const Plan& plan, size_t attention);

}  // namespace redline
