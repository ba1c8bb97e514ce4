// Planes: nibbles (16 bytes per unit), scale (2). Codes are the levels that the nibbles name.
#pragma once

#include "kernels/unit.h"

namespace redline::hip {

struct iq4_nl : Quantized<true, 0, false> {
    static constexpr args::Planes kPlanes = {{128, 16}};
    RL_DEVICE static uint32_t levels(uint32_t nibbles) {
        return pick_levels(nibbles, 0xBFAD9881u, 0xF6EADDCFu, 0x26190D01u, 0x71594535u);
    }
    RL_DEVICE static void codes(const Matrix& w, size_t unit, uint32_t (&words)[8]) {
        const auto q = load<Words4>(w.data, unit);
        RL_UNROLL
        for (uint32_t k = 0; k < 4; ++k) {
            words[k] = levels(q.d[k] & 0x0F0F0F0Fu);
            words[k + 4] = levels((q.d[k] >> 4) & 0x0F0F0F0Fu);
        }
    }
    RL_DEVICE static UnitScales scales(const Matrix& w, size_t unit) {
        const float d = half_value(load<uint16_t>(w.data, w.units * 8 + unit));
        return {{d, d}, {0.0f, 0.0f}};
    }
};

}  // namespace redline::hip
