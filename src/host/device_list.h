// The devices of a model: one, or several that share its layers out.
#pragma once

#include "host/host_options.h"
#include "host/loaded_model.h"

namespace redline {

// Sets the devices that the options name; or, where they share layers out and name none, all GPUs of the best
// backend; or the best device. None is opened.
Status choose_devices(LoadedModel& loaded, const HostOptions& options);
// Why the ranks of a job cannot divide each layer; empty: they can.
std::string why_not_divided(const LoadedModel& loaded);
// Opens all of them. Notes say which are one device that is named several times.
Status open_devices(LoadedModel& loaded, const HostOptions& options);
// Opens one of several as open_devices() does.
Result<std::unique_ptr<Backend>> open_listed(const LoadedModel& loaded, const OpenDevice& device,
                                             const HostOptions& options);

}  // namespace redline
