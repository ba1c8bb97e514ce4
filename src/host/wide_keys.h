// Layers whose keys are cached with more bits than was asked for.
#pragma once

#include "places/model.h"

namespace redline {

// Says in how many layers keys are cached as q8_0 in place of this type, see kLargeKeyBias. Empty where there
// are none.
std::string wide_keys_note(const Model& model, CacheTypes cache);

}  // namespace redline
