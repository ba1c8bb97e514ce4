// Goes on after a lost device: opens it again, places the model there, and lets the session read its tokens
// again.
#pragma once

#include "host/load_model.h"

namespace redline {

// `loaded` and `options` have to outlive the session. A loss soon after the last one is an error.
void rescue_from_loss(Session& session, LoadedModel& loaded, const HostOptions& options);

}  // namespace redline
