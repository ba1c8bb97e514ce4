// Scores of blocks, compiled for AVX-512.
#include "vec_avx512.h"

#include "block_key_loops.h"

namespace redline::cpu {

constexpr BlockKeyKernels kBlockKeysAvx512{widen_halves, score_keys};

}  // namespace redline::cpu
