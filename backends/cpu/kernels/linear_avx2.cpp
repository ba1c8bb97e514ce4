// Matrix kernels of the AVX2 level; those of a group of formats are made from linear_group.cpp.in.
#include "linear.h"

namespace redline::cpu {

const LinearKernel* linear_avx2_float(uint32_t gguf_id);
const LinearKernel* linear_avx2_plain(uint32_t gguf_id);
const LinearKernel* linear_avx2_low_k(uint32_t gguf_id);
const LinearKernel* linear_avx2_high_k(uint32_t gguf_id);
const LinearKernel* linear_avx2_nonlinear(uint32_t gguf_id);
const LinearKernel* linear_avx2_code_books(uint32_t gguf_id);
const LinearKernel* linear_avx2_ternary(uint32_t gguf_id);

const LinearKernel* linear_kernel_avx2(uint32_t gguf_id) {
    for (const auto find : {linear_avx2_float, linear_avx2_plain, linear_avx2_low_k, linear_avx2_high_k,
                            linear_avx2_nonlinear, linear_avx2_code_books, linear_avx2_ternary})
        if (const LinearKernel* kernel = find(gguf_id)) return kernel;
    return nullptr;
}

}  // namespace redline::cpu
