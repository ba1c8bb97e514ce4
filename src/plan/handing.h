// Rows of activations that one kernel leaves in int8 for another, in steps of one row: instead of quantizing
// them again in each of its groups of threads, a product takes them as the kernel that computed them left
// them.
#pragma once

#include "plan/plan.h"

#include <functional>
#include <optional>

namespace redline {

// What a kernel could take, and how it norms it.
struct TakenRow {
    Slot x;
    Norm norm;
};

struct HandedRow {
    size_t from;     // the number of the kernel that leaves it
    size_t to;       // of the one that takes it
    uint32_t units;  // of 32 elements
    Norm norm;       // of who takes it
};

// Kernels are those of plan.steps. `gives`: whether one could leave the row of the only slot that it writes.
// A row is left for the first that takes it: others, that norm in another way, find it in f32 as well.
std::vector<HandedRow> handed_rows(const Plan& plan,
                                   const std::function<std::optional<TakenRow>(size_t)>& takes,
                                   const std::function<bool(size_t)>& gives);

}  // namespace redline
