// Weights by their shape alone, for plans that nothing runs.
#pragma once

#include "plan/plan.h"

namespace redline::test {

// (count, rows, cols)
inline WeightInfo matrix(uint64_t rows, uint64_t cols, const char* format = "F32", uint64_t count = 1) {
    return {{"m", find_format(format), {count, rows, cols}}, WeightRole::matrix};
}
inline WeightInfo matrix(uint64_t rows, uint64_t cols, uint64_t count) {
    return matrix(rows, cols, "F32", count);
}
inline WeightInfo vector(uint64_t size) {
    return {{"v", find_format("F32"), {1, 1, size}}, WeightRole::vector};
}

}  // namespace redline::test
