// Goes on after a lost device: opens it again, places the model there, and lets the session read its tokens
// again.
#pragma once

#include "cli/options/model_options.h"

namespace redline::cli {

// `loaded` and `options` have to outlive the session. A loss soon after the last one is an error.
void rescue_from_loss(Session& session, LoadedModel& loaded, const ModelOptions& options);

}  // namespace redline::cli
