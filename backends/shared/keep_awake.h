// Whether a device that waits for the CPU between the parts of a step is kept busy meanwhile. Some lower
// their clocks while they have little to do, and each part then takes several times as long: it is tried for
// a moment, again and again at growing distances, and goes on where it made parts and steps shorter.
#pragma once

#include <array>
#include <cstddef>

namespace redline {

class KeepAwake {
public:
    // Of a step, that one executable computes: how long the device waited behind it, lately.
    class Part {
        friend class KeepAwake;
        std::array<double, 4> pauses_ = {};
        size_t paused_ = 0;
    };

    // A part computes one token; times are in seconds, of a clock that never goes back.
    void begins(Part& part, double now);
    void ends(double now);
    // Before the part goes.
    void forget(const Part& part);
    // For how long the device is to be kept busy once the part is done; 0: not at all.
    double busy_seconds(const Part& part) const;
    // Whether it was found to help.
    bool helps() const { return state_ == State::kept; }

private:
    enum class State { watching, trying, kept };
    // Steps: from when on, what they took, and for how long of it the device was at work.
    struct Steps {
        double begin = 0.0, seconds = 0.0, device = 0.0;
        size_t count = 0;
    };

    void end_step(double now);
    void end_window();

    State state_ = State::watching;
    Part* leader_ = nullptr;   // that steps are told apart by
    Part* running_ = nullptr;  // now, or before
    double began_ = 0.0, ended_ = 0.0, leader_began_ = 0.0;
    Steps step_, window_, before_;
    bool interrupted_ = false;  // the step, by more than the CPU's part
    double waited_ = 0.0;       // since the last trial
    double patience_ = 0.3;     // until the next one
    size_t windows_ = 0;        // of the trial
};

}  // namespace redline
