// Planes: lower bits of entries, and signs with the entries' top bits between them (8 bytes per unit),
// scales (1), per 256 elements their scale (2).
#pragma once

#include "kernels/code_books.h"

namespace redline::hip {

struct iq2_xs : Quantized<true, 0, false> {
    static constexpr args::Planes kPlanes = {{64, 8, 2}};
    static constexpr bool kHalves = true;
    RL_DEVICE static void codes(const Matrix& w, size_t unit, uint32_t (&words)[8]) {
        const auto both = load<Words2>(w.data, unit);
        const uint32_t signs = even_signs(both.d[1]);
        RL_UNROLL
        for (uint32_t l = 0; l < 4; ++l) {
            const uint32_t top = (both.d[1] >> (25 + 2 * l)) & 1u;
            put_eight(kIq2XsBook.d[byte_of(both.d[0], l) | top << 8], signs, l, words);
        }
    }
    RL_DEVICE static UnitScales scales(const Matrix& w, size_t unit) {
        const uint32_t nibbles = w.data[w.units * 8 + unit];
        const float d = half_value(load<uint16_t>(w.data, w.units * 4 + w.units / 2 + unit / 8));
        return {{d * (0.25f * byte_float(nibbles & 15u) + 0.125f),
                 d * (0.25f * byte_float(nibbles >> 4) + 0.125f)},
                {0.0f, 0.0f}};
    }
};

}  // namespace redline::hip
