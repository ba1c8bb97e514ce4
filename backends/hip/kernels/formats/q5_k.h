// Planes: nibbles (16 bytes per unit), per 256 elements scale, minimum and packed scales (16), fifth bits (4
// per unit; bit v of byte j: element 4v + j).
#pragma once

#include "kernels/unit.h"

namespace redline::hip {

struct q5_k : Quantized<false, 0, true> {
    static constexpr args::Planes kPlanes = {{128, 16, 32}};
    static constexpr bool kCrowded = true;
    RL_DEVICE static void codes(const Matrix& w, size_t unit, uint32_t (&words)[8]) {
        const uint32_t high = load<uint32_t>(w.data, w.units * 4 + w.units / 2 + unit);
        const auto q = load<Words4>(w.data, unit);
        RL_UNROLL
        for (uint32_t k = 0; k < 4; ++k) {
            words[k] = (q.d[k] & 0x0F0F0F0Fu) | ((high >> k) & 0x01010101u) << 4;
            words[k + 4] = ((q.d[k] >> 4) & 0x0F0F0F0Fu) | ((high >> (k + 4)) & 0x01010101u) << 4;
        }
    }
    RL_DEVICE static UnitScales scales(const Matrix& w, size_t unit) {
        return k_scales(k_header(w, unit), uint32_t(unit % 8));
    }
    RL_DEVICE static Words4 k_header(const Matrix& w, size_t unit) {
        return load<Words4>(w.data, w.units + unit / 8);
    }
};

}  // namespace redline::hip
