// Planes: codes (8 bytes per unit; bits as in q2_k), per 256 elements the scale (2).
#pragma once

#include "kernels/unit.h"

namespace redline::hip {

struct tq2_0 : Quantized<false, 1, false> {
    static constexpr args::Planes kPlanes = {{64, 2}};
    RL_DEVICE static void codes(const Matrix& w, size_t unit, uint32_t (&words)[8]) {
        const auto q = load<Words2>(w.data, unit);
        RL_UNROLL
        for (uint32_t k = 0; k < 8; ++k) words[k] = (q.d[k / 4] >> (k % 4 * 2)) & 0x03030303u;
    }
    RL_DEVICE static UnitScales scales(const Matrix& w, size_t unit) {
        return pair_scales(half_value(load<uint16_t>(w.data, w.units * 4 + unit / 8)), 0.0f);
    }
};

}  // namespace redline::hip
