// The short tune of the kernels that make tokens, before a model's first use of them on a device: what reads
// the most comes first. Each kernel has it once; a whole tune (run/tune.h) takes no notice of it.
#pragma once

#include "measure/tune.h"

namespace redline {

constexpr double kQuickSeconds = 5.0;

struct QuickTune {
    std::vector<TunedKernel> kernels;  // that were timed,
    size_t planned = 0;                // of so many; for the others there was no time
    double seconds = 0.0;

    size_t faster() const;  // otherwise than by default
    // "kernels: 6 of 9 timed on hip in 4.8 s, 2 faster otherwise than by default: ..."
    std::string text(const std::string& device) const;
};

// Times what the folder's file has nothing of, keeps what it finds there, and has the backend use it;
// `again`: what was not found by a whole tune. Before the first is timed all are kept as having had their
// turn, so that a device that does not survive it is not put to it a second time. After an error the backend
// still computes as was found until then, unless it is lost.
Result<QuickTune> quick_tune(const Model& model, Backend& backend, const EngineOptions& options,
                             TuneClock& clock, const std::string& folder, bool again, TuneOptions how = {});

}  // namespace redline
