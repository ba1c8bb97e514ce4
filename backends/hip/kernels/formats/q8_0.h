// Planes: signed bytes (32 per unit), scale (2).
#pragma once

#include "kernels/unit.h"

namespace redline::hip {

struct q8_0 : Quantized<true, 0, false> {
    static constexpr args::Planes kPlanes = {{256, 16}};
    RL_DEVICE static void codes(const Matrix& w, size_t unit, uint32_t (&words)[8]) {
        const auto low = load<Words4>(w.data, unit * 2), high = load<Words4>(w.data, unit * 2 + 1);
        RL_UNROLL
        for (uint32_t k = 0; k < 4; ++k) {
            words[k] = low.d[k];
            words[k + 4] = high.d[k];
        }
    }
    RL_DEVICE static UnitScales scales(const Matrix& w, size_t unit) {
        const float d = half_value(load<uint16_t>(w.data, w.units * 16 + unit));
        return {{d, d}, {0.0f, 0.0f}};
    }
};

}  // namespace redline::hip
