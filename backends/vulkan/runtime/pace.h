// How long work takes on the device at hand: assumed at first, then measured, so that what is handed over at
// once keeps the device busy for about a tenth of a second at most. Kernel drivers reset a GPU after some
// seconds, and a desktop on it stands still meanwhile.
#pragma once

#include "api.h"

#include <atomic>
#include <cstdint>
#include <span>

namespace redline::vulkan {

// Seconds that a submission is planned to take.
constexpr double kSubmissionSeconds = 0.08;
// What one dispatch may take while nothing is measured, in assumed seconds.
constexpr double kFirstDispatchSeconds = 0.05;

// Of a device: what is assumed of it, and what its submissions took.
class Pace {
public:
    // Operations and bytes per second of a slow device of the kind, with slow kernels. Tests change them.
    struct Rates {
        double flops;
        double bytes;
    };
    static Rates rates_of(VkPhysicalDeviceType type, bool matrix_units);
    Rates rates = {};
    double assumed(double flops, double bytes) const;

    void note(double seconds);
    // Of the longest submission since the last call.
    double take_longest() { return longest_.exchange(0.0); }

private:
    std::atomic<double> longest_{0.0};
};

// Of one recording: measured seconds per assumed second, and how much work a step had when that was measured.
class Meter {
public:
    struct Load {
        double rows = 1.0;
        double keys = 1.0;
    };

    void begin_step(const Load& load);
    // A submission of this step.
    void measured(double assumed, double seconds);
    void end_step();

    bool known() const { return ratio_ > 0.0 || step_ratio_ > 0.0; }
    // Of this step. More rows and keys than were measured take longer, at most in proportion.
    double predicted(double assumed) const;
    // Whether so much may go into one submission.
    bool fits(double assumed) const;
    // How many of these command buffers may: one at least.
    size_t fitting(std::span<const double> assumed) const;
    // What one dispatch may take, in assumed seconds, so that it does not fill a submission.
    double dispatch_seconds() const;

private:
    double factor() const;

    Load load_, step_load_;
    double ratio_ = 0.0;       // the worst of the last step; 0: nothing is measured
    double before_ = 0.0;      // the worst of the step before: one slow step alone may have been chance
    double step_ratio_ = 0.0;  // the worst of this step so far
    double largest_ = 0.0;     // assumed seconds of a submission measured in the first step
};

}  // namespace redline::vulkan
