// Vector kernels: the portable level and the choice of a level.
#include "vec_portable.h"

#include "each_loops.h"
#include "levels.h"

namespace redline::cpu {

namespace {
constexpr VectorKernels kVectorPortable{rms_norm, act_mul, add, add_scaled, rope};
}  // namespace

const VectorKernels& vector_kernels(Isa isa) {
    if constexpr (RL_CPU_AVX512)
        if (isa >= Isa::avx512) return kVectorAvx512;
    if constexpr (RL_CPU_AVX2)
        if (isa == Isa::avx2) return kVectorAvx2;
    (void)isa;
    return kVectorPortable;
}

const EachLoop* each_loops(Isa isa) {
    if constexpr (RL_CPU_AVX512)
        if (isa >= Isa::avx512) return kEachAvx512;
    if constexpr (RL_CPU_AVX2)
        if (isa == Isa::avx2) return kEachAvx2;
    (void)isa;
    return kEachLoops;
}

}  // namespace redline::cpu
