// Vector kernels, compiled for AVX2 with FMA and F16C.
#include "vec_avx2.h"

#include "levels.h"
#include "vector_loops.h"

namespace redline::cpu {

constexpr VectorKernels kVectorAvx2{rms_norm, act_mul, add, add_scaled, scale, rope};

}  // namespace redline::cpu
