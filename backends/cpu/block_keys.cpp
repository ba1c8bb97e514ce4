// Scores of blocks: the portable level and the choice of a level.
#include "simd/vec_portable.h"

#include "simd/block_key_loops.h"

namespace redline::cpu {

namespace {
constexpr BlockKeyKernels kBlockKeysPortable{widen_halves, score_keys};
}  // namespace

const BlockKeyKernels& block_key_kernels(Isa isa) {
#if defined(__x86_64__)
    if (isa >= Isa::avx512) return kBlockKeysAvx512;
    if (isa == Isa::avx2) return kBlockKeysAvx2;
#else
    (void)isa;
#endif
    return kBlockKeysPortable;
}

}  // namespace redline::cpu
