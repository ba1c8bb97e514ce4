// Planes: nibbles (16 bytes per unit), fifth bits (4; as q5_0), scale and minimum (4).
#pragma once

#include "kernels/unit.h"

namespace redline::hip {

struct q5_1 : Quantized<false, 0, true> {
    static constexpr args::Planes kPlanes = {{128, 32, 32}};
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
        const uint32_t d = load<uint32_t>(w.data, w.units * 5 + unit);
        return pair_scales(half_value(uint16_t(d)), half_value(uint16_t(d >> 16)));
    }
};

}  // namespace redline::hip
