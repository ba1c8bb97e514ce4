// The loops of element-wise ops, the rows of plan/ops/each.def, by level as those in kernels.h are.
#pragma once

#include "kernels.h"

namespace redline::cpu {

struct EachRun {
    float* y = nullptr;
    // Of n elements each; null: the row does not read it.
    const float *x = nullptr, *z = nullptr, *column = nullptr;
    const float* values = nullptr;
    size_t n = 0;
};
using EachLoop = void (*)(EachRun run);

// By EachRow.
const EachLoop* each_loops(Isa isa);

}  // namespace redline::cpu
