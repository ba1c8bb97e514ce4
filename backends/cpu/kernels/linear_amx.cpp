// Matrix kernels of the AMX level: for many activation rows; few are left to the AVX-512 level.
#include "linear_amx.h"

#include "linear_table.h"

namespace redline::cpu {

const LinearKernel* linear_kernel_amx(uint32_t gguf_id, size_t x_rows) {
    // Below, decoding the weights costs more than the tiles save.
    constexpr size_t kFewestRows = 32;
    if (x_rows < kFewestRows) return nullptr;
    for (const auto find : {find_plain<Avx512, AmxProduct>, find_low_k<Avx512, AmxProduct>,
                            find_high_k<Avx512, AmxProduct>, find_nonlinear<Avx512, AmxProduct>,
                            find_code_books<Avx512, AmxProduct>, find_ternary<Avx512, AmxProduct>})
        if (const LinearKernel* kernel = find(gguf_id)) return kernel;
    return nullptr;
}

}  // namespace redline::cpu
