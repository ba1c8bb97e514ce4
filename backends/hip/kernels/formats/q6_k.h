// Planes: low nibbles (16 bytes per unit), upper pairs of bits (8), per 256 elements the scales (16) and
// their scale (2). Bits 2v, 2v + 1 of byte j of upper word h belong to element 16h + 4v + j.
#pragma once

#include "kernels/unit.h"

namespace redline::hip {

struct q6_k : Quantized<false, 32, false> {
    static constexpr args::Planes kPlanes = {{128, 64, 16, 2}};
    static constexpr bool kHalves = true;
    RL_DEVICE static void codes(const Matrix& w, size_t unit, uint32_t (&words)[8]) {
        const auto high = load<Words2>(w.data, w.units * 2 + unit);
        const auto q = load<Words4>(w.data, unit);
        RL_UNROLL
        for (uint32_t k = 0; k < 4; ++k) {
            words[k] = (q.d[k] & 0x0F0F0F0Fu) | ((high.d[0] >> (2 * k)) & 0x03030303u) << 4;
            words[k + 4] = ((q.d[k] >> 4) & 0x0F0F0F0Fu) | ((high.d[1] >> (2 * k)) & 0x03030303u) << 4;
        }
    }
    RL_DEVICE static UnitScales scales(const Matrix& w, size_t unit) {
        // 24 bytes per unit, then 2 per unit of scales, then 2 per 8 units.
        const uint32_t pair = load<uint16_t>(w.data, w.units * 12 + unit);
        const float d = half_value(load<uint16_t>(w.data, w.units * 13 + unit / 8));
        return {{d * small_float(signed_byte(pair, 0)), d * small_float(signed_byte(pair, 1))}, {0.0f, 0.0f}};
    }
};

}  // namespace redline::hip
