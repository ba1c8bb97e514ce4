// Scores of blocks, compiled for AVX2.
#include "vec_avx2.h"

#include "block_key_loops.h"

namespace redline::cpu {

constexpr BlockKeyKernels kBlockKeysAvx2{widen_halves, score_keys};

}  // namespace redline::cpu
