// Rows of the embedding table.
#pragma once

#include "kernels/unit.h"

namespace redline::hip {

// y[t] = scale * table[token[t]], bit for bit as the host decodes it. A block per token.
template <typename F>
RL_DEVICE void embed(const args::EmbedArgs& a) {
    const uint32_t token = block_index().x;
    if (token >= a.step->rows) return;
    const auto* tokens = reinterpret_cast<const int32_t*>(a.step + 1);
    const size_t row = lesser(uint32_t(tokens[token]), a.rows - 1);
    float* y = a.y + size_t(token) * a.cols;
    if constexpr (F::kFloats) {
        for (uint32_t i = thread_index(); i < a.cols; i += kThreads)
            y[i] = F::element(a.table, row * a.cols + i) * a.scale;
    } else {
        const uint32_t units = a.cols / 32;
        for (uint32_t u = thread_index(); u < units; u += kThreads) {
            uint32_t words[8];
            F::codes(a.table, row * units + u, words);
            const UnitScales s = F::scales(a.table, row * units + u);
            RL_UNROLL
            for (uint32_t k = 0; k < 8; ++k) RL_UNROLL
            for (uint32_t e = 0; e < 4; ++e) y[u * 32 + k * 4 + e] = decoded<F>(words, s, k, e) * a.scale;
        }
    }
}

}  // namespace redline::hip
