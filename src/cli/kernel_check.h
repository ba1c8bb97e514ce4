// The check of a device's kernels before a model's first use of them, and what is remembered of it.
#pragma once

#include "cli/options/model_options.h"

namespace redline::cli {

// Of what a session of so many tokens would run on the device; what is known from before is not checked
// again. What computes wrongly is put aside, so that simpler kernels take its place; where there are none
// Vulkan's are of a lower level, or a device that nobody asked for is left for the next. All of that is said.
// An error: the device that was asked for computes wrongly, whatever is put aside.
Status check_kernels(LoadedModel& loaded, const ModelOptions& options, uint64_t context, uint32_t outputs);

}  // namespace redline::cli
