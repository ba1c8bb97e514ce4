// What the files of kernels share: launch shapes, and dispatches that several ops need.
#pragma once

#include "args.h"
#include "executable.h"

namespace redline::vulkan {

// Invocations per work-group, of kernels that have no reason for another number.
constexpr uint32_t kThreads = 128;
// Up to this many rows products go by vector, each weight read once for all of them; above it by tiles.
constexpr uint32_t kFewRows = 8;

inline uint32_t rows_kind(const Plan& plan, Slot s) {
    return plan.slot(s).of_outputs ? RL_ROWS_OUTPUTS : RL_ROWS_ALL;
}

// y = norm(x) over groups of `width`.
Status record_norm(Recorder& recorder, const View& view, Slot x, const Norm& norm, uint32_t width, Binding y);

// A product of rows with a weight: y (+)= w * x + bias.
struct Product {
    Weight w;
    Binding x;  // (rows, cols) floats
    Binding y;  // (rows, width of y)
    uint32_t rows = 1;
    uint32_t rows_kind = RL_ROWS_ALL;
    uint32_t stride = 0;  // of y
    Weight bias = {};
    bool accumulate = false;
};
Status record_product(Recorder& recorder, const View& view, const Product& product);

}  // namespace redline::vulkan
