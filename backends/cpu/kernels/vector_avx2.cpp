// Vector kernels, compiled for AVX2 with FMA and F16C.
#include "vec_avx2.h"

#include "each_loops.h"
#include "levels.h"

namespace redline::cpu {

constexpr VectorKernels kVectorAvx2{rms_norm, act_mul, add, add_scaled, rope};
constexpr const EachLoop* kEachAvx2 = kEachLoops;

}  // namespace redline::cpu
