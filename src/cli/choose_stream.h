// Whether prompts of a split model have the CPU's weights flow through the device.
#pragma once

#include "cli/load_plan.h"

namespace redline::cli {

// By what is predicted from rates that are measured now, in some milliseconds. A split with it has its needs.
Result<StreamChoice> choose_stream(const LoadedModel& loaded, const ModelOptions& options,
                                   const SessionOptions& session, Split& split);

// Takes the nearest split that leaves room for the staging, where prompts gain by it and generation loses
// little.
Status make_room_to_stream(const LoadedModel& loaded, const ModelOptions& options,
                           const SessionOptions& session, const SplitWish& wish, Yield yield, Split& split);

}  // namespace redline::cli
