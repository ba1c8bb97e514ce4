// Tunes the kernels that generate tokens for a few seconds, before a model's first use of them on a device;
// those that read the most come first. Each kernel is quick-tuned once; a full tune (measure/tune.h) ignores
// its results.
#pragma once

#include "measure/tune.h"

namespace redline {

constexpr double kQuickSeconds = 5.0;

struct QuickTune {
    std::vector<TunedKernel> kernels;  // that were timed
    size_t planned = 0;                // the number to time; there was no time for the rest
    double seconds = 0.0;

    size_t faster() const;  // kernels with a faster variant than the default
    // "kernels: 6 of 9 timed on hip in 4.8 s, 2 with a faster variant than the default: ..."
    std::string text(const std::string& device) const;
};

// Times the kernels that the folder's file has nothing of, keeps the results there, and has the backend use
// them; `again` repeats all but those of a full tune. Before the first is timed all are marked as tried, so
// that a device that does not survive it is spared a second attempt. After an error the backend uses the
// results until then, unless it is lost.
Result<QuickTune> quick_tune(const Model& model, Backend& backend, const EngineOptions& options,
                             TuneClock& clock, const std::string& folder, bool again, TuneOptions how = {});

}  // namespace redline
