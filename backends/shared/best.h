// How a device picks the largest of a row of outputs, so that the host need not fetch all of them. In two
// turns: of each slice of the row, then of all that was picked.
#pragma once

#include "base/scored.h"
#include "plan/plan.h"

#include <algorithm>

namespace redline {

constexpr uint32_t kMostBest = 64;     // that are picked
constexpr uint32_t kBestSlice = 4096;  // entries that one work-group picks from

inline uint32_t best_slices(const Plan& plan) {
    return (plan.slot(plan.output).width + kBestSlice - 1) / kBestSlice;
}
// What the first turn picks.
inline uint32_t best_between(const Plan& plan) {
    return best_slices(plan) * kMostBest;
}
// Of steps of one row, where what the first turn picks goes into one slice.
inline bool can_pick_best(const Plan& plan) {
    return plan.max_rows == 1 && plan.slot(plan.output).of_outputs && best_between(plan) <= kBestSlice;
}

// What the second turn left, of `among` outputs, as Executable::best() has it.
inline std::vector<Scored> best_in_order(const void* picked, uint32_t among) {
    const auto* first = static_cast<const Scored*>(picked);
    std::vector<Scored> best(first, first + std::min(kMostBest, among));
    std::sort(best.begin(), best.end(), comes_first);
    return best;
}

}  // namespace redline
