// Vector kernels: the portable level and the choice of a level.
#include "simd/vec_portable.h"

#include "simd/levels.h"
#include "simd/vector_loops.h"

namespace redline::cpu {

namespace {
constexpr VectorKernels kVectorPortable{rms_norm, act_mul, add, add_scaled, rope};
}  // namespace

const VectorKernels& vector_kernels(Isa isa) {
    (void)isa;
    return kVectorPortable;
}

}  // namespace redline::cpu
