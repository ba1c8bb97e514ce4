// The check of a device's kernels before a model's first use of them, and what is remembered of it.
#pragma once

#include "cli/options/model_options.h"

namespace redline::cli {

// Of what a session of so many tokens would run on the device; what is known from before is not checked
// again. What computes wrongly is put aside, so that simpler kernels take its place; where there are none
// Vulkan's are of a lower level, or a device that nobody asked for is left for the next. That is said in one
// line for each device, with details of each kernel for the curious. An error: the device that was asked for
// computes wrongly, whatever is put aside.
Status check_kernels(LoadedModel& loaded, const ModelOptions& options, uint64_t context, uint32_t outputs);

// For who looks at a device: puts aside what computes wrongly, as a session would, and says so. False: that
// cannot be done without, and the device has to be opened anew to be looked at as it is.
Result<bool> put_wrong_aside(const Model& model, Backend& backend, const std::string& device,
                             const ModelOptions& options, const SessionOptions& session);

}  // namespace redline::cli
