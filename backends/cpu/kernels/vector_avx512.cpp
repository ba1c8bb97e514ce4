// Vector kernels, compiled for AVX-512.
#include "vec_avx512.h"

#include "levels.h"
#include "vector_loops.h"

namespace redline::cpu {

constexpr VectorKernels kVectorAvx512{rms_norm, act_mul, add, add_scaled, scale, rope};

}  // namespace redline::cpu
