// Scores of blocks: the portable level and the choice of a level.
#include "vec_portable.h"

#include "block_key_loops.h"

namespace redline::cpu {

namespace {
constexpr BlockKeyKernels kBlockKeysPortable{widen_halves, score_keys};
}  // namespace

const BlockKeyKernels& block_key_kernels(Isa isa) {
    if constexpr (RL_CPU_AVX512)
        if (isa >= Isa::avx512) return kBlockKeysAvx512;
    if constexpr (RL_CPU_AVX2)
        if (isa == Isa::avx2) return kBlockKeysAvx2;
    (void)isa;
    return kBlockKeysPortable;
}

}  // namespace redline::cpu
