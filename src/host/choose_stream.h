// The choice whether prompts of a split model are computed on the device by copying the CPU's weights there.
#pragma once

#include "host/load_plan.h"

namespace redline {

// Predicts both ways from rates that are measured now, in some milliseconds. A split that streams gets the
// memory needs of its staging.
Result<StreamChoice> choose_stream(const LoadedModel& loaded, const HostOptions& options,
                                   const SessionOptions& session, Split& split);

// Replaces the split by the nearest one with room for the staging, where prompts gain by it and generation
// loses little.
Status make_room_to_stream(const LoadedModel& loaded, const HostOptions& options,
                           const SessionOptions& session, const SplitWish& wish, Yield yield, Split& split);

}  // namespace redline
