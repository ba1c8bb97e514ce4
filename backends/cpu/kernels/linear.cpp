// The choice of a matrix kernel: the highest level that has one.
#include "linear.h"

#include "base/result.h"

#include <memory>
#include <new>

namespace redline::cpu {

std::byte* kernel_scratch(size_t bytes) {
    struct Free {
        void operator()(std::byte* memory) const { ::operator delete(memory, std::align_val_t(64)); }
    };
    static thread_local std::unique_ptr<std::byte, Free> memory;
    static thread_local size_t held = 0;
    if (held < bytes) {
        memory.reset(static_cast<std::byte*>(::operator new(bytes, std::align_val_t(64))));
        held = bytes;
    }
    return memory.get();
}

const LinearKernel& linear_kernel(Isa isa, const Format& format, size_t x_rows) {
    const uint32_t id = format.gguf_id;
    const LinearKernel* kernel = nullptr;
    // Declared, but not compiled where the build leaves the level out.
    if constexpr (RL_CPU_AMX)
        if (isa >= Isa::amx) kernel = linear_kernel_amx(id, x_rows);
    if constexpr (RL_CPU_AVX512)
        if (!kernel && isa >= Isa::avx512) kernel = linear_kernel_avx512(id);
    if constexpr (RL_CPU_AVX2)
        if (!kernel && isa >= Isa::avx2) kernel = linear_kernel_avx2(id);
    if (!kernel) kernel = linear_kernel_portable(id);
    (void)isa, (void)x_rows;
    RL_CHECK(kernel, "no matrix kernel for {}", format.name);
    return *kernel;
}

}  // namespace redline::cpu
