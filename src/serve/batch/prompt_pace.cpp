#include "serve/batch/prompt_pace.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace redline::serve {

namespace {

// The part that a new measurement has in an average.
constexpr double kNew = 0.4;
// So many steps at least go between two that have no prompts.
constexpr uint32_t kBetween = 4;

void average(double& into, double value) {
    into = into == 0.0 ? value : into + kNew * (value - into);
}

}  // namespace

void PromptPace::measured(double seconds, uint32_t generating, uint32_t prompt_rows) {
    if (prompt_rows == 0) {
        const bool same = generating == generating_;
        if (!same) generating_seconds_ = 0.0;
        average(generating_seconds_, seconds);
        generating_ = generating;
        since_ = 0;
        return;
    }
    if (generating > 0) ++since_;
    // Together with others a row costs what it adds; what that is tells only a step that is known without it.
    const double alone = generating > 0 ? generating_seconds_ : 0.0;
    if (generating > 0 && generating != generating_) return;
    average(row_seconds_, std::max(seconds - alone, seconds / 16) / prompt_rows);
}

uint32_t PromptPace::rows(uint32_t generating, uint32_t most) const {
    if (generating == 0) return most;
    uint32_t wanted = kUnmeasured;
    if (generating_seconds_ > 0.0 && row_seconds_ > 0.0) {
        const double seconds = generating_seconds_ * share_ / (1.0 - share_);
        wanted = uint32_t(std::clamp(seconds / row_seconds_, double(kFewest), double(most)));
    }
    return std::min(wanted, most);
}

bool PromptPace::wants_measure(uint32_t generating) const {
    return generating > 0 && generating != generating_ && since_ >= kBetween;
}

void PromptBursts::measured(double seconds, uint32_t generating, uint32_t prompt_rows) {
    if (prompt_rows == 0) {
        average(generating_seconds_, seconds);
        owed_ = std::max(owed_ - seconds, -seconds);
        return;
    }
    const double read = std::max(seconds - (generating > 0 ? generating_seconds_ : 0.0), 0.0);
    owed_ += read * (1.0 - share_now_) / share_now_;
    // The end of a prompt takes as long as many rows do, and says little about them.
    if (prompt_rows >= kFewest) average(row_seconds_, std::max(read, seconds / 16) / prompt_rows);
}

uint32_t PromptBursts::rows(uint32_t generating, size_t reading, uint32_t most) {
    if (generating == 0) owed_ = 0.0;
    if (generating == 0) return most;
    if (owed_ > 0.0 && !together_) return 0;
    share_now_ = std::max(share_, double(reading) / double(reading + generating));
    uint32_t wanted = kUnmeasured;
    if (row_seconds_ > 0.0) {
        const double crowd = std::min(1.0, double(reading) / double(generating));
        const double hold = std::max(std::lerp(together_ ? kHoldTogether : kHold, kLongHold, crowd),
                                     std::lerp(kHoldSteps, kLongHoldSteps, crowd) * generating_seconds_);
        wanted = uint32_t(std::clamp(hold / row_seconds_, double(kFewest), double(most)));
        const uint32_t beside = together_ ? generating : 0;
        if (wanted + beside > kTile) wanted -= std::min(wanted - kFewest, (wanted + beside) % kTile);
    }
    return std::min(wanted, most);
}

std::vector<size_t> prompt_order(std::span<const PromptState> prompts) {
    std::vector<size_t> order(prompts.size());
    std::iota(order.begin(), order.end(), size_t(0));
    const auto key = [&](size_t i) { return int64_t(prompts[i].left) - int64_t(prompts[i].passed_over); };
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return key(a) < key(b); });
    return order;
}

}  // namespace redline::serve
