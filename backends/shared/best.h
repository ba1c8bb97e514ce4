// How a device picks the largest of each row of outputs, so that the host need not fetch all of them. In two
// turns: of each slice of a row, then of all that was picked.
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
// What the first turn picks of a row.
inline uint32_t best_between(const Plan& plan) {
    return best_slices(plan) * kMostBest;
}
// Where what the first turn picks goes into one slice.
inline bool can_pick_best(const Plan& plan) {
    return plan.slot(plan.output).of_outputs && best_between(plan) <= kBestSlice;
}
// Bytes of what the second turn picks of all rows, and of what the first one does.
inline uint64_t best_bytes(const Plan& plan) {
    return plan.max_outputs * kMostBest * sizeof(Scored);
}
inline uint64_t best_between_bytes(const Plan& plan) {
    return plan.max_outputs * best_between(plan) * sizeof(Scored);
}

// What the second turn left of so many rows, of `among` outputs, as Executable::best() has it.
inline std::vector<Scored> best_in_order(const void* picked, size_t rows, uint32_t among) {
    const auto* first = static_cast<const Scored*>(picked);
    const uint32_t each = std::min(kMostBest, among);
    std::vector<Scored> best;
    for (size_t row = 0; row < rows; ++row) {
        best.insert(best.end(), first + row * kMostBest, first + row * kMostBest + each);
        std::sort(best.end() - each, best.end(), comes_first);
    }
    return best;
}

}  // namespace redline
