// Planes: lower bits of entries (4 bytes per unit), their top bits and directions (2), per 256 elements the
// scales (8), with a nibble of their own scale in the top of each two bytes. Codes as iq1_s.
#pragma once

#include "kernels/code_books.h"

namespace redline::hip {

struct iq1_m : Quantized<false, 9, false> {
    static constexpr args::Planes kPlanes = {{32, 16, 8}};
    static constexpr bool kHalves = true;
    RL_DEVICE static void codes(const Matrix& w, size_t unit, uint32_t (&words)[8]) {
        const uint32_t low = load<uint32_t>(w.data, unit), high = load<uint16_t>(w.data, w.units * 2 + unit);
        RL_UNROLL
        for (uint32_t l = 0; l < 4; ++l) {
            const uint32_t nibble = high >> (4 * l);
            put_ternary(byte_of(low, l) | (nibble & 7u) << 8, (nibble >> 3) & 1u, l, words);
        }
    }
    RL_DEVICE static UnitScales scales(const Matrix& w, size_t unit) {
        const auto all = load<Words2>(w.data, w.units / 4 * 3 + unit / 8);
        const uint32_t half = ((all.d[0] >> 12) & 15u) | ((all.d[0] >> 24) & 0xF0u) |
                              ((all.d[1] >> 4) & 0xF00u) | ((all.d[1] >> 16) & 0xF000u);
        const uint32_t both = (unit % 8 < 4 ? all.d[0] : all.d[1]) >> (unit % 4 / 2 * 16 + unit % 2 * 6);
        const float d = half_value(uint16_t(half));
        return {{d * (0.25f * byte_float(both & 7u) + 0.125f),
                 d * (0.25f * byte_float((both >> 3) & 7u) + 0.125f)},
                {0.0f, 0.0f}};
    }
};

}  // namespace redline::hip
