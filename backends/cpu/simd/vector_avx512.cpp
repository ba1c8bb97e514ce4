// Vector kernels, compiled for AVX-512.
#include "simd/vec_avx512.h"

#include "simd/levels.h"
#include "simd/vector_loops.h"

namespace redline::cpu {

constexpr VectorKernels kVectorAvx512{rms_norm, act_mul, add, add_scaled, scale, rope};

}  // namespace redline::cpu
