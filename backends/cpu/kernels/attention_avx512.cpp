// Attention, compiled for AVX-512.
#include "codes_avx512.h"

#include "attention_flash.h"
#include "kv_store.h"
#include "levels.h"

namespace redline::cpu {

constexpr AttentionKernels kAttentionAvx512{kv_store, attend, combine, merge, float_activations};

}  // namespace redline::cpu
