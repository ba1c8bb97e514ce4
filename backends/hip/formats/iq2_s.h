// Planes: lower bits of entries, and signs (8 bytes per unit), top pairs of bits of entries, and scales (2),
// per 256 elements their scale (2).
#pragma once

#include "kernels/code_books.h"

namespace redline::hip {

struct iq2_s : Quantized<true, 0, false> {
    static constexpr args::Planes kPlanes = {{64, 16, 2}};
    static constexpr bool kHalves = true;
    RL_DEVICE static void codes(const Matrix& w, size_t unit, uint32_t (&words)[8]) {
        const auto both = load<Words2>(w.data, unit);
        const uint32_t tops = load<uint16_t>(w.data, w.units * 4 + unit);
        RL_UNROLL
        for (uint32_t l = 0; l < 4; ++l) {
            const uint32_t top = (tops >> (2 * l)) & 3u;
            put_eight(kIq2SBook.d[byte_of(both.d[0], l) | top << 8], both.d[1], l, words);
        }
    }
    RL_DEVICE static UnitScales scales(const Matrix& w, size_t unit) {
        const uint32_t nibbles = load<uint16_t>(w.data, w.units * 4 + unit) >> 8;
        const float d = half_value(load<uint16_t>(w.data, w.units * 5 + unit / 8));
        return {{d * (0.25f * byte_float(nibbles & 15u) + 0.125f),
                 d * (0.25f * byte_float(nibbles >> 4) + 0.125f)},
                {0.0f, 0.0f}};
    }
};

}  // namespace redline::hip
