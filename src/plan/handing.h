// What kernels of one row do for each other. Rows of activations that one leaves in int8 for another: instead
// of quantizing them again in each of its groups of threads, a product takes them as the kernel that computed
// them left them. And the rotation of heads that attention does by itself instead of waiting for a launch of
// its own.
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

// Whether a step from number `first` on, or the host, reads what the slot holds before it.
bool read_later(const Plan& plan, size_t first, Slot slot);

// The RopeStore right before an attention, steps[attention], which that can do by itself: of its layer and
// queries, and nobody reads q or k afterwards. Null when there is none.
const RopeStore* turned_by(const Plan& plan, size_t attention);

}  // namespace redline
