// Vector kernels: the portable level and the choice of a level.
#include "vec_portable.h"

#include "levels.h"
#include "vector_loops.h"

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
