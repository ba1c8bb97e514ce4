// Planes: nibbles (16 bytes per unit), exponent (1). Codes are twice the E2M1 number under half the scale.
#pragma once

#include "kernels/unit.h"

namespace redline::hip {

struct mxfp4 : Quantized<true, 0, false> {
    static constexpr args::Planes kPlanes = {{128, 8}};
    RL_DEVICE static void codes(const Matrix& w, size_t unit, uint32_t (&words)[8]) {
        const auto q = load<Words4>(w.data, unit);
        RL_UNROLL
        for (uint32_t k = 0; k < 4; ++k) {
            const TwoWords both = pick_e2m1(q.d[k]);
            words[k] = both.below;
            words[k + 4] = both.above;
        }
    }
    RL_DEVICE static UnitScales scales(const Matrix& w, size_t unit) {
        const uint32_t exponent = w.data[w.units * 16 + unit];
        const float d = bits_float(exponent < 2 ? 0x00200000u << exponent : (exponent - 1) << 23);
        return {{d, d}, {0.0f, 0.0f}};
    }
};

}  // namespace redline::hip
