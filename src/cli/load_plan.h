// What runs where, and what it takes, decided and said before a byte of weights is read.
#pragma once

#include "cli/options/model_options.h"

namespace redline::cli {

// For a session like this one: that the model fits the device; or, where it does not or -ngl asks for it,
// which layers the CPU takes (then LoadedModel::placements). An error has the numbers and what would fit.
Status plan_load(LoadedModel& loaded, const ModelOptions& options, const SessionOptions& session);

}  // namespace redline::cli
