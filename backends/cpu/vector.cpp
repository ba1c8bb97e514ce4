// Vector kernels: the portable level and the choice of a level.
#include "simd/vec_portable.h"

#include "simd/levels.h"
#include "simd/vector_loops.h"

namespace redline::cpu {

namespace {
constexpr VectorKernels kVectorPortable{rms_norm, act_mul, add, add_scaled, scale, rope};
}  // namespace

const VectorKernels& vector_kernels(Isa isa) {
    if constexpr (RL_CPU_AVX512)
        if (isa >= Isa::avx512) return kVectorAvx512;
    if constexpr (RL_CPU_AVX2)
        if (isa == Isa::avx2) return kVectorAvx2;
    (void)isa;
    return kVectorPortable;
}

}  // namespace redline::cpu
