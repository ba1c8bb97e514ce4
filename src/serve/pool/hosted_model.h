// A model of the pool as a program hosts it: a device, an engine and a scheduler for it.
#pragma once

#include "serve/pool/model_pool.h"

namespace redline::serve {

struct Hosting {
    HostOptions host;  // the model is set by what is opened
    SchedulerOptions scheduler;
    ServedModel served;  // what holds for all of them
    // Sampling where a request is silent, by what the file recommends.
    std::function<Result<SamplerOptions>(const Metadata&)> sampling;
};

// Why the model could not be loaded even where all others were unloaded, which hold so many bytes; absent: it
// may be. The file is read but for its weights.
std::optional<Problem> check_hosted(const OfferedModel& offered, const Hosting& hosting, uint64_t held);
// 400: the file is wrong; 503: it could not be placed now.
OpenedModel open_hosted(const OfferedModel& offered, const Hosting& hosting);

}  // namespace redline::serve
