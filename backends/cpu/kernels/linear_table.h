// The table of a level: one kernel per format, over the level's vector family.
#pragma once

#include "backends/cpu/formats/linear_code_books.h"
#include "linear_few.h"
#include "linear_float.h"

namespace redline::cpu {
namespace {

template <class... Entries>
RL_ALWAYS_INLINE inline const LinearKernel* find_kernel(uint32_t gguf_id) {
    const LinearKernel* found = nullptr;
    ((Entries::kId == gguf_id ? void(found = &Entries::kernel) : void()), ...);
    return found;
}

template <class V, class F>
struct Int8Entry : Int8Product<V, F> {
    static constexpr uint32_t kId = F::kId;
};
template <class V, class F>
struct FloatEntry : FloatProduct<V, F> {
    static constexpr uint32_t kId = F::kId;
};

// The formats in groups, so that a level's kernels can be compiled side by side (see linear_group.cpp.in).
template <class V>
RL_ALWAYS_INLINE inline const LinearKernel* find_float(uint32_t gguf_id) {
    return find_kernel<FloatEntry<V, F32<V>>, FloatEntry<V, F16<V>>, FloatEntry<V, BF16<V>>>(gguf_id);
}
template <class V, template <class, class> class Entry = Int8Entry>
RL_ALWAYS_INLINE inline const LinearKernel* find_plain(uint32_t gguf_id) {
    return find_kernel<Entry<V, Q4_0<V>>, Entry<V, Q4_1<V>>, Entry<V, Q5_0<V>>, Entry<V, Q5_1<V>>,
                       Entry<V, Q8_0<V>>>(gguf_id);
}
template <class V, template <class, class> class Entry = Int8Entry>
RL_ALWAYS_INLINE inline const LinearKernel* find_low_k(uint32_t gguf_id) {
    return find_kernel<Entry<V, Q2_K<V>>, Entry<V, Q3_K<V>>>(gguf_id);
}
template <class V, template <class, class> class Entry = Int8Entry>
RL_ALWAYS_INLINE inline const LinearKernel* find_high_k(uint32_t gguf_id) {
    return find_kernel<Entry<V, Q4_K<V>>, Entry<V, Q5_K<V>>, Entry<V, Q6_K<V>>>(gguf_id);
}
template <class V, template <class, class> class Entry = Int8Entry>
RL_ALWAYS_INLINE inline const LinearKernel* find_nonlinear(uint32_t gguf_id) {
    return find_kernel<Entry<V, IQ4_NL<V>>, Entry<V, IQ4_XS<V>>, Entry<V, MXFP4<V>>, Entry<V, NVFP4<V>>,
                       Entry<V, IQ3_XXS<V>>, Entry<V, IQ3_S<V>>>(gguf_id);
}
template <class V, template <class, class> class Entry = Int8Entry>
RL_ALWAYS_INLINE inline const LinearKernel* find_code_books(uint32_t gguf_id) {
    constexpr uint32_t kIq2XS = 17, kIq2S = 22;
    if constexpr (V::kLooksUpTrits)
        if (const LinearKernel* kernel = find_kernel<Entry<V, IQ1_S<V>>, Entry<V, IQ1_M<V>>>(gguf_id))
            return kernel;
    return find_kernel<Entry<V, IQ2_XXS<V>>, Entry<V, IQ2_XS<V>>>(gguf_id == kIq2S ? kIq2XS : gguf_id);
}
template <class V, template <class, class> class Entry = Int8Entry>
RL_ALWAYS_INLINE inline const LinearKernel* find_ternary(uint32_t gguf_id) {
    constexpr uint32_t kTq1 = 34, kTq2 = 35;
    return find_kernel<Entry<V, IQ1_S<V>>, Entry<V, IQ1_M<V>>, Entry<V, TQ2_0<V>>, Entry<V, Q1_0<V>>,
                       Entry<V, Q2_0<V>>>(gguf_id == kTq1 ? kTq2 : gguf_id);
}

}  // namespace
}  // namespace redline::cpu
