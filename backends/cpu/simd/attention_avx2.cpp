// Attention, compiled for AVX2 with FMA and F16C.
#include "simd/vec_avx2.h"

#include "simd/attention_flash.h"
#include "simd/kv_store.h"
#include "simd/levels.h"

namespace redline::cpu {

constexpr AttentionKernels kAttentionAvx2{kv_store, attend, combine, merge, float_activations};

}  // namespace redline::cpu
