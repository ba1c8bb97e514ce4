// The quick tune of a device's kernels before a model's first use of them.
#pragma once

#include "cli/options/model_options.h"

namespace redline::cli {

// Times those of which nothing is known that make tokens, and says what that gained. It comes before weights
// are placed: variants decide how much memory a session needs, and copying would be in the way of what is
// timed; the system reads the model's files meanwhile. What goes wrong is said, and the model runs all the
// same. An error: the device was lost, and does not open again.
Status quick_tune(LoadedModel& loaded, const ModelOptions& options, uint64_t context, uint32_t outputs);

}  // namespace redline::cli
