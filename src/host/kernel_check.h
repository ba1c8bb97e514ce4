// The check of a device's kernels before a model's first use of them, and what is remembered of it.
#pragma once

#include "host/host_options.h"
#include "host/loaded_model.h"

namespace redline {

// Checks the kernels that a session of so many tokens would run on the device; known ones are not checked
// again. Kernels that compute wrongly are put aside, so that simpler ones take their place. Where there are
// none, Vulkan is opened at a lower level, or a device that nobody asked for is left for the next. A note
// says so in one line per device, details name each kernel. It is an error where the device that was asked
// for computes wrongly whatever is put aside.
Status check_kernels(LoadedModel& loaded, const HostOptions& options, uint64_t context, uint32_t outputs);

// Puts aside kernels that compute wrongly, as a session would, and notes it, for callers that examine a
// device. False: there are no others in their place, and the device has to be opened anew to be examined as
// it is.
Result<bool> put_wrong_aside(const Model& model, Backend& backend, const std::string& device,
                             const HostOptions& options, const SessionOptions& session);

}  // namespace redline
