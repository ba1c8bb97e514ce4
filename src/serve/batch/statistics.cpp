#include "serve/batch/statistics.h"

#include <algorithm>

namespace redline::serve {

void Histogram::add(double value) {
    const auto at = std::lower_bound(bounds_.begin(), bounds_.end(), value);
    ++counts_[size_t(at - bounds_.begin())];
    sum_ += value;
    ++count_;
}

uint32_t Statistics::running() const {
    return uint32_t(std::count_if(slots.begin(), slots.end(), [](const SlotState& slot) {
        return slot.doing != SlotState::Doing::idle;
    }));
}

}  // namespace redline::serve
