// Planes: nibbles (16 bytes per unit), scale and minimum (4).
#pragma once

#include "kernels/unit.h"

namespace redline::hip {

struct q4_1 : Quantized<false, 0, true> {
    static constexpr args::Planes kPlanes = {{128, 32}};
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
        const uint32_t d = load<uint32_t>(w.data, w.units * 4 + unit);
        return pair_scales(half_value(uint16_t(d)), half_value(uint16_t(d >> 16)));
    }
};

}  // namespace redline::hip
