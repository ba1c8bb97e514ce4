// Scores of blocks, compiled for AVX2.
#include "simd/vec_avx2.h"

#include "simd/block_key_loops.h"

namespace redline::cpu {

constexpr BlockKeyKernels kBlockKeysAvx2{widen_halves, score_keys};

}  // namespace redline::cpu
