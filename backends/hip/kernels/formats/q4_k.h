// Planes: nibbles (16 bytes per unit), then per 256 elements scale, minimum and the packed scales (16).
#pragma once

#include "kernels/unit.h"

namespace redline::hip {

struct q4_k : Quantized<false, 0, true> {
    static constexpr args::Planes kPlanes = {{128, 16}};
    RL_DEVICE static Words4 nibbles(const Matrix& w, size_t unit) { return load<Words4>(w.data, unit); }
    RL_DEVICE static void codes(const Matrix& w, size_t unit, uint32_t (&words)[8]) {
        const Words4 q = nibbles(w, unit);
        RL_UNROLL
        for (uint32_t k = 0; k < 4; ++k) {
            words[k] = q.d[k] & 0x0F0F0F0Fu;
            words[k + 4] = (q.d[k] >> 4) & 0x0F0F0F0Fu;
        }
    }
    RL_DEVICE static UnitScales scales(const Matrix& w, size_t unit) {
        return k_scales(k_header(w, unit), uint32_t(unit % 8));
    }
    RL_DEVICE static Words4 k_header(const Matrix& w, size_t unit) {
        return load<Words4>(w.data, w.units + unit / 8);
    }
};

}  // namespace redline::hip
