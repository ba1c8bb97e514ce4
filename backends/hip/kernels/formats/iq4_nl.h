// Planes: nibbles (16 bytes per unit), scale (2). Codes are the levels that the nibbles name.
#pragma once

#include "kernels/unit.h"

namespace redline::hip {

struct iq4_nl : Quantized<true, 0, false> {
    static constexpr args::Planes kPlanes = {{128, 16}};
    RL_DEVICE static void codes(const Matrix& w, size_t unit, uint32_t (&words)[8]) {
        const auto q = load<Words4>(w.data, unit);
        RL_UNROLL
        for (uint32_t k = 0; k < 4; ++k) {
            const TwoWords both = pick_levels(q.d[k], 0xBFAD9881u, 0xF6EADDCFu, 0x26190D01u, 0x71594535u);
            words[k] = both.below;
            words[k + 4] = both.above;
        }
    }
    RL_DEVICE static UnitScales scales(const Matrix& w, size_t unit) {
        const float d = half_value(load<uint16_t>(w.data, w.units * 8 + unit));
        return {{d, d}, {0.0f, 0.0f}};
    }
};

}  // namespace redline::hip
