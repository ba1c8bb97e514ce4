// What backends whose weights lie in planes ask of ops alike.
#pragma once

#include "backends/shared/layout.h"
#include "plan/plan.h"

#include <vector>

namespace redline {

// Offsets in scratch and in what is sent with a step are multiples of 256.
inline uint64_t aligned(uint64_t bytes) {
    return (bytes + 255) / 256 * 256;
}

// The first that is not below n.
inline uint32_t power_of_two(uint32_t n) {
    uint32_t p = 1;
    while (p < n) p *= 2;
    return p;
}

inline bool has_layout(const Plan& plan, Weight w) {
    return weight_layout(*plan.weight(w).tensor.format) != nullptr;
}
// Of two that one kernel reads: they must be of one format.
inline bool has_layout(const Plan& plan, Weight gate, Weight up) {
    return plan.weight(gate).tensor.format == plan.weight(up).tensor.format && has_layout(plan, gate);
}

// The op as a product of whole rows with weights that have layouts; of a gated one they are of one format,
// since one kernel reads both. Null: it is none.
const Product* rows_product(const Op& op, const Plan& plan);
std::vector<Tensor> tensors_of(const Product& product, const Plan& plan);

}  // namespace redline
