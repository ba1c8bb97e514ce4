// Matrix kernels of the AMX level: for many activation rows; few are left to the AVX-512 level.
#include "linear_amx.h"

#include "linear_table.h"

namespace redline::cpu {

const LinearKernel* linear_kernel_amx(uint32_t gguf_id, size_t x_rows) {
    // Below, decoding the weights costs more than the tiles save.
    constexpr size_t kFewestRows = 32;
    if (x_rows < kFewestRows) return nullptr;
    using V = Avx512;
    return find_kernel<AmxProduct<Q4_0<V>>, AmxProduct<Q4_1<V>>, AmxProduct<Q5_0<V>>, AmxProduct<Q5_1<V>>,
                       AmxProduct<Q8_0<V>>, AmxProduct<Q2_K<V>>, AmxProduct<Q3_K<V>>, AmxProduct<Q4_K<V>>,
                       AmxProduct<Q5_K<V>>, AmxProduct<Q6_K<V>>, AmxProduct<IQ4_NL<V>>, AmxProduct<IQ4_XS<V>>,
                       AmxProduct<MXFP4<V>>>(gguf_id);
}

}  // namespace redline::cpu
