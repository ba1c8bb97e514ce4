#include "serve/batch/statistics.h"

#include <algorithm>

namespace redline::serve {

void Histogram::add(double value) {
    const auto at = std::lower_bound(bounds_.begin(), bounds_.end(), value);
    ++counts_[size_t(at - bounds_.begin())];
    sum_ += value;
    ++count_;
}

void Statistics::count_guess(uint64_t proposed, uint64_t right) {
    ++drafts;
    drafted += proposed;
    accepted += right;
    accepted_at.resize(std::max<size_t>(accepted_at.size(), proposed));
    for (uint64_t i = 0; i < right; ++i) ++accepted_at[i];
}

void Statistics::count_end(StopReason reason) {
    switch (reason) {
        case StopReason::end_of_generation:
        case StopReason::stop_string:
            ++ended_stop;
            break;
        case StopReason::max_tokens:
        case StopReason::context_full:
            ++ended_length;
            break;
        case StopReason::cancelled:
        case StopReason::sink_closed:
            ++ended_cancelled;
            break;
        case StopReason::broken:
            ++ended_error;
            break;
    }
}

uint32_t Statistics::running() const {
    return uint32_t(std::count_if(slots.begin(), slots.end(), [](const SlotState& slot) {
        return slot.doing != SlotState::Doing::idle;
    }));
}

}  // namespace redline::serve
