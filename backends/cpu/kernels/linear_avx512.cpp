// Matrix kernels of the AVX-512 VNNI level; those of a group of formats are made from linear_group.cpp.in.
#include "linear.h"

namespace redline::cpu {

const LinearKernel* linear_avx512_float(uint32_t gguf_id);
const LinearKernel* linear_avx512_plain(uint32_t gguf_id);
const LinearKernel* linear_avx512_low_k(uint32_t gguf_id);
const LinearKernel* linear_avx512_high_k(uint32_t gguf_id);
const LinearKernel* linear_avx512_nonlinear(uint32_t gguf_id);
const LinearKernel* linear_avx512_code_books(uint32_t gguf_id);
const LinearKernel* linear_avx512_ternary(uint32_t gguf_id);

const LinearKernel* linear_kernel_avx512(uint32_t gguf_id) {
    // Before those that do without: both have IQ1.
    if (has_byte_permutes())
        if (const LinearKernel* kernel = linear_avx512_code_books(gguf_id)) return kernel;
    for (const auto find : {linear_avx512_float, linear_avx512_plain, linear_avx512_low_k,
                            linear_avx512_high_k, linear_avx512_nonlinear, linear_avx512_ternary})
        if (const LinearKernel* kernel = find(gguf_id)) return kernel;
    return nullptr;
}

}  // namespace redline::cpu
