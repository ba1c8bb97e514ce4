// Planes: low pairs of bits (8 bytes per unit), third bits (4), per 256 elements the packed scales (12) and
// their scale (2). Bits are grouped as in q2_k and q5_0; a clear third bit means minus 4.
#pragma once

#include "kernels/unit.h"

namespace redline::hip {

struct q3_k : Quantized<false, 4, false> {
    static constexpr args::Planes kPlanes = {{64, 32, 12, 2}};
    static constexpr bool kHalves = true;
    // Scale j of 16: low four bits in the nibbles of bytes 0..7, high two in the bit pairs of bytes 8..11.
    RL_DEVICE static int32_t sub_scale(uint32_t a, uint32_t b, uint32_t c, uint32_t j) {
        const uint32_t i = j % 8, low = (byte_of(i < 4 ? a : b, i % 4) >> (j / 8 * 4)) & 15u;
        const uint32_t high = (byte_of(c, j % 4) >> (j / 4 * 2)) & 3u;
        return int32_t(low | high << 4) - 32;
    }
    RL_DEVICE static void codes(const Matrix& w, size_t unit, uint32_t (&words)[8]) {
        const uint32_t high = load<uint32_t>(w.data, w.units * 2 + unit);
        const auto q = load<Words2>(w.data, unit);
        RL_UNROLL
        for (uint32_t k = 0; k < 4; ++k) {
            words[k] = ((q.d[0] >> (2 * k)) & 0x03030303u) | ((high >> k) & 0x01010101u) << 2;
            words[k + 4] = ((q.d[1] >> (2 * k)) & 0x03030303u) | ((high >> (k + 4)) & 0x01010101u) << 2;
        }
    }
    RL_DEVICE static UnitScales scales(const Matrix& w, size_t unit) {
        const size_t block = unit / 8, at = w.units * 3 + block * 3;
        const uint32_t j = uint32_t(unit % 8) * 2;
        const uint32_t a = load<uint32_t>(w.data, at), b = load<uint32_t>(w.data, at + 1);
        const uint32_t c = load<uint32_t>(w.data, at + 2);
        // 12 bytes per unit and 12 per 8 units before the scales' scale.
        const float d = half_value(load<uint16_t>(w.data, w.units * 6 + w.units / 8 * 6 + block));
        return {{d * small_float(sub_scale(a, b, c, j)), d * small_float(sub_scale(a, b, c, j + 1))},
                {0.0f, 0.0f}};
    }
};

}  // namespace redline::hip
