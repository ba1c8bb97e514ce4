// Vector kernels, compiled for AVX2 with FMA and F16C.
#include "simd/vec_avx2.h"

#include "simd/levels.h"
#include "simd/vector_loops.h"

namespace redline::cpu {

constexpr VectorKernels kVectorAvx2{rms_norm, act_mul, add, add_scaled, scale, rope};

}  // namespace redline::cpu
