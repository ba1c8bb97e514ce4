// Planes: codes (8 bytes per unit), per 256 elements the packed scales and minima (16), scale and minimum
// (4). Bits 2v, 2v + 1 of byte j of code word h belong to element 16h + 4v + j.
#pragma once

#include "kernels/unit.h"

namespace redline::hip {

struct q2_k : Quantized<false, 0, true> {
    static constexpr args::Planes kPlanes = {{64, 16, 4}};
    static constexpr bool kHalves = true;
    RL_DEVICE static void codes(const Matrix& w, size_t unit, uint32_t (&words)[8]) {
        const auto q = load<Words2>(w.data, unit);
        RL_UNROLL
        for (uint32_t k = 0; k < 4; ++k) {
            words[k] = (q.d[0] >> (2 * k)) & 0x03030303u;
            words[k + 4] = (q.d[1] >> (2 * k)) & 0x03030303u;
        }
    }
    RL_DEVICE static UnitScales scales(const Matrix& w, size_t unit) {
        const uint32_t pair = load<uint16_t>(w.data, w.units * 4 + unit);
        const uint32_t both = load<uint32_t>(w.data, w.units * 2 + w.units / 2 + unit / 8);
        const float d = half_value(uint16_t(both)), m = half_value(uint16_t(both >> 16));
        return {{d * small_float(int32_t(pair & 15u)), d * small_float(int32_t((pair >> 8) & 15u))},
                {-(m * small_float(int32_t((pair >> 4) & 15u))), -(m * small_float(int32_t(pair >> 12)))}};
    }
};

}  // namespace redline::hip
