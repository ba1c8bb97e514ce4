// Planes: signs (4 bytes per unit; bit v of byte j: element 4v + j), per 128 elements the scale (2).
#pragma once

#include "kernels/unit.h"

namespace redline::hip {

struct q1_0 : Quantized<false, 1, false> {
    static constexpr args::Planes kPlanes = {{32, 4}};
    // Twice a sign's bit.
    RL_DEVICE static void codes(const Matrix& w, size_t unit, uint32_t (&words)[8]) {
        const uint32_t q = load<uint32_t>(w.data, unit);
        words[0] = (q << 1) & 0x02020202u;
        RL_UNROLL
        for (uint32_t k = 1; k < 8; ++k) words[k] = (q >> (k - 1)) & 0x02020202u;
    }
    RL_DEVICE static UnitScales scales(const Matrix& w, size_t unit) {
        return pair_scales(half_value(load<uint16_t>(w.data, w.units * 2 + unit / 4)), 0.0f);
    }
};

}  // namespace redline::hip
