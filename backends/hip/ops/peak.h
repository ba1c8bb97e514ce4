// What the matrix units of a device do at most: a peak that shares can be given of.
#pragma once

#include "backends/hip/runtime/memory.h"
#include "plan/backend.h"

namespace redline::hip {

// Takes about half a second. An error where products are wrong, too.
Result<MatrixPeak> measure_matrix_peak(Device& device, Memory& memory);

}  // namespace redline::hip
