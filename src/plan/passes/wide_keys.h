// Keys that are cached with more bits than others of the same plan.
#pragma once

#include "plan/plan.h"

#include <functional>

namespace redline {

// Caches of keys of fewer than 8 bits that layers store to have q8_0 in place of these, where `wide` says so.
// They are rotated alike, so that the steps stay as they are.
void widen_keys(Plan& plan, const std::function<bool(uint32_t layer)>& wide);

}  // namespace redline
