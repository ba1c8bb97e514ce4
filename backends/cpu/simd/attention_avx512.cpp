// Attention, compiled for AVX-512.
#include "simd/vec_avx512.h"

#include "simd/attention_flash.h"
#include "simd/kv_store.h"
#include "simd/levels.h"

namespace redline::cpu {

constexpr AttentionKernels kAttentionAvx512{kv_store, attend, combine, merge, float_activations};

}  // namespace redline::cpu
