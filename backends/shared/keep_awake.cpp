#include "backends/shared/keep_awake.h"

#include <algorithm>

namespace redline {

namespace {

// A pause that is longer is no wait for the CPU's part of a step, or the part takes so long that the device's
// matters little; one that is shorter is not worth a piece of work.
constexpr double kLongestPause = 0.02, kShortestPause = 50e-6;
// Of the shortest pause lately: a device that is still busy when the next part comes delays it.
constexpr double kBusyShare = 0.8;
constexpr double kWindowSeconds = 0.15;
constexpr size_t kLeastSteps = 4;
// Of a trial, that clocks have for rising.
constexpr size_t kFirstWindows = 2;
// What clocks make of the device's time is more than it varies by otherwise.
constexpr double kGain = 0.85;
constexpr double kMorePatience = 4.0, kMostPatience = 30.0;
constexpr double kLeaderGone = 1.0;

}  // namespace

void KeepAwake::begins(Part& part, double now) {
    if (running_) {
        const double pause = now - ended_;
        if (pause > kLongestPause)
            interrupted_ = true;
        else
            running_->pauses_[running_->paused_++ % running_->pauses_.size()] = pause;
    }
    if (!leader_ || now - leader_began_ > kLeaderGone) {
        leader_ = &part;
        step_ = {now};
        interrupted_ = false;
    } else if (leader_ == &part) {
        end_step(now);
    }
    if (leader_ == &part) leader_began_ = now;
    running_ = &part;
    began_ = now;
}

void KeepAwake::ends(double now) {
    step_.device += now - began_;
    ended_ = now;
}

void KeepAwake::forget(const Part& part) {
    if (leader_ == &part) leader_ = nullptr;
    if (running_ == &part) running_ = nullptr;
}

double KeepAwake::busy_seconds(const Part& part) const {
    if (state_ == State::watching || part.paused_ < part.pauses_.size()) return 0.0;
    const double least = *std::ranges::min_element(part.pauses_);
    return least < kShortestPause ? 0.0 : kBusyShare * least;
}

void KeepAwake::end_step(double now) {
    if (!interrupted_) {
        window_.seconds += now - step_.begin;
        window_.device += step_.device;
        ++window_.count;
    }
    step_ = {now};
    interrupted_ = false;
    if (window_.seconds >= kWindowSeconds && window_.count >= kLeastSteps) end_window();
}

void KeepAwake::end_window() {
    Steps found = window_;
    window_ = {};
    found.seconds /= double(found.count);
    found.device /= double(found.count);
    if (state_ == State::watching) {
        const bool waits = found.seconds - found.device > found.device / 2;
        waited_ = waits ? waited_ + found.seconds * double(found.count) : 0.0;
        if (waited_ < patience_) return;
        state_ = State::trying;
        before_ = found;
        windows_ = 0;
    } else if (state_ == State::trying && ++windows_ > kFirstWindows) {
        const bool better = found.device < kGain * before_.device && found.seconds < before_.seconds;
        state_ = better ? State::kept : State::watching;
        waited_ = 0.0;
        patience_ = std::min(kMorePatience * patience_, kMostPatience);
    }
}

}  // namespace redline
