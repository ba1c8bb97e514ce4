#include "team_size.h"

#include <algorithm>
#include <cmath>

namespace redline::cpu {

namespace {

// A thread that shares its processor has it for some milliseconds and then not: spans are of several such
// times. A trial is shorter, since it costs; the first of these times are often free for a thread that slept.
constexpr double kSpan = 0.040, kTrial = 0.020;
// Processors that a team may lose without a trial. Programs that do little take less.
constexpr double kLost = 0.15;
// More threads that lost some have to be faster by this factor, so that noise does not move the number to and
// fro.
constexpr double kGain = 1.05;
// The time that a trial lost is at most one part in so many of the time until the next one.
constexpr double kPay = 50.0, kLeastWait = 0.25, kMostWait = 30.0;
// A number that grew so long ago has stood the test.
constexpr double kProven = 2.0;
// So long without a loss, after losses, and the load has changed: the next trial comes at once.
constexpr double kCalm = 0.25;

}  // namespace

void RunTime::add(const RunTime& run) {
    seconds += run.seconds;
    cpu_seconds += run.cpu_seconds;
    work += run.work;
}

void TeamSize::ran(const RunTime& run) {
    if (most_ == 1 || run.seconds <= 0.0 || run.work <= 0.0) return;
    span_.add(run);
    grown_.add(run);
    rested(run.seconds);
    if (grown_.seconds > kProven) before_grown_ = 0.0;
    if (now_ != settled_) {
        if (span_.seconds >= kTrial) judge();
        return;
    }
    run_seconds_ = run.seconds;
    if (span_.seconds >= kSpan) watch();
}

void TeamSize::rested(double seconds) {
    wait_ = std::max(0.0, wait_ - seconds);
}

// At the end of a span with the settled number.
void TeamSize::watch() {
    speed_ = speed_ > 0.0 ? (speed_ + span_.speed()) / 2 : span_.speed();
    note_calm(lost() > kLost);
    const bool loses = now_ > 1 && lost() > kLost;
    const bool may_grow = now_ < most_;
    if (wait_ > 0.0 || !(loses || may_grow)) return start(now_);
    const bool grows = may_grow && (!loses || grow_next_);
    grow_next_ = !grows;
    if (failed_ >= undisturbed()) failed_ = 0;
    start(grows ? most_ : std::clamp(undisturbed() - failed_, 1u, now_ - 1));
}

void TeamSize::note_calm(bool disturbed) {
    calm_ = disturbed ? 0.0 : calm_ + span_.seconds;
    if (calm_ >= kCalm && disturbed_) wait_ = 0.0;
    disturbed_ = disturbed || (disturbed_ && calm_ < kCalm);
}

// At the end of a trial. When more threads were too many, those that had a processor of theirs are tried
// next.
void TeamSize::judge() {
    const bool grows = now_ > settled_;
    if (span_.speed() > speed_ * (grows && lost() > kLost ? kGain : 1.0)) return settle();
    pay(span_.lost_at(speed_));
    if (!grows) ++failed_;
    const uint32_t some = undisturbed();
    start(grows && some > settled_ && some < now_ ? some : settled_);
}

void TeamSize::settle() {
    if (now_ > settled_) {
        before_grown_ = speed_;
        grown_ = span_;
    } else {
        // To grow again would lose a trial, and if it was wrong the last time that is to be paid, too.
        const double trial = std::max(kTrial, run_seconds_) * (1.0 - speed_ / span_.speed());
        pay(std::max(trial, before_grown_ > 0.0 ? grown_.lost_at(before_grown_) : 0.0));
        before_grown_ = 0.0;
    }
    failed_ = 0;
    speed_ = span_.speed();
    settled_ = now_;
    start(now_);
}

void TeamSize::start(uint32_t threads) {
    now_ = threads;
    span_ = {};
}

void TeamSize::pay(double lost_seconds) {
    wait_ = std::clamp(kPay * lost_seconds, kLeastWait, kMostWait);
}

double TeamSize::lost() const {
    return now_ - span_.cpu_seconds / span_.seconds;
}

// Each thread that shares its processor with one other program loses half of it.
uint32_t TeamSize::undisturbed() const {
    return now_ - std::min(now_, uint32_t(std::lround(2.0 * std::max(0.0, lost()))));
}

}  // namespace redline::cpu
