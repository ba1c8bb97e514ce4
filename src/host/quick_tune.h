// The quick tune of a device's kernels before a model's first use of them.
#pragma once

#include "host/host_options.h"
#include "host/loaded_model.h"

namespace redline {

// Times the kernels of unknown speed that make tokens, and reports the gain. It comes before weights are
// placed: variants decide how much memory a session needs, and copies would disturb the times; the system
// reads the model's files meanwhile. Faults are noted, and the model runs all the same. It is an error where
// the device was lost and does not open again.
Status quick_tune(LoadedModel& loaded, const HostOptions& options, uint64_t context, uint32_t outputs);

}  // namespace redline
