// Matrix kernels of the AVX2 level.
#include "linear_avx2.h"

#include "linear_table.h"

namespace redline::cpu {

const LinearKernel* linear_kernel_avx2(uint32_t gguf_id) {
    return find_linear_kernel<Avx2>(gguf_id);
}

}  // namespace redline::cpu
