// Vector kernels, compiled for AVX-512.
#include "vec_avx512.h"

#include "each_loops.h"
#include "levels.h"

namespace redline::cpu {

constexpr VectorKernels kVectorAvx512{rms_norm, act_mul, add, add_scaled, rope};
constexpr const EachLoop* kEachAvx512 = kEachLoops;

}  // namespace redline::cpu
