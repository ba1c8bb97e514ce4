// Matrix kernels of the AVX-512 VNNI level.
#include "linear_avx512.h"

#include "linear_table.h"

namespace redline::cpu {

const LinearKernel* linear_kernel_avx512(uint32_t gguf_id) {
    return find_linear_kernel<Avx512>(gguf_id);
}

}  // namespace redline::cpu
