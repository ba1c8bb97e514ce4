// Planes: nibbles (16 bytes per unit), scale (2).
#pragma once

#include "kernels/unit.h"

namespace redline::hip {

struct q4_0 : Quantized<false, 8, false> {
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
        const float d = half_value(load<uint16_t>(w.data, w.units * 8 + unit));
        return {{d, d}, {0.0f, 0.0f}};
    }
};

}  // namespace redline::hip
