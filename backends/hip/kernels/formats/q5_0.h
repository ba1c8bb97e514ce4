// Planes: nibbles (16 bytes per unit), fifth bits (4; bit v of byte j: element 4v + j), scale (2).
#pragma once

#include "kernels/unit.h"

namespace redline::hip {

struct q5_0 : Quantized<false, 16, false> {
    static constexpr args::Planes kPlanes = {{128, 32, 16}};
    RL_DEVICE static void codes(const Matrix& w, size_t unit, uint32_t (&words)[8]) {
        const uint32_t high = load<uint32_t>(w.data, w.units * 4 + unit);
        const auto q = load<Words4>(w.data, unit);
        RL_UNROLL
        for (uint32_t k = 0; k < 4; ++k) {
            words[k] = (q.d[k] & 0x0F0F0F0Fu) | ((high >> k) & 0x01010101u) << 4;
            words[k + 4] = ((q.d[k] >> 4) & 0x0F0F0F0Fu) | ((high >> (k + 4)) & 0x01010101u) << 4;
        }
    }
    RL_DEVICE static UnitScales scales(const Matrix& w, size_t unit) {
        const float d = half_value(load<uint16_t>(w.data, w.units * 10 + unit));
        return {{d, d}, {0.0f, 0.0f}};
    }
};

}  // namespace redline::hip
