// Attention, compiled for AVX2 with FMA and F16C.
#include "codes_avx2.h"

#include "attention_flash.h"
#include "kv_store.h"
#include "levels.h"

namespace redline::cpu {

constexpr AttentionKernels kAttentionAvx2{kv_store, attend, combine, merge, float_activations};

}  // namespace redline::cpu
