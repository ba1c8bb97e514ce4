// Planes: entries and signs with the scale between them (8 bytes per unit), per 256 elements their scale (2).
#pragma once

#include "kernels/code_books.h"

namespace redline::hip {

struct iq2_xxs : Quantized<true, 0, false> {
    static constexpr args::Planes kPlanes = {{64, 2}};
    RL_DEVICE static void codes(const Matrix& w, size_t unit, uint32_t (&words)[8]) {
        const auto both = load<Words2>(w.data, unit);
        const uint32_t signs = even_signs(both.d[1]);
        RL_UNROLL
        for (uint32_t l = 0; l < 4; ++l) put_eight(kIq2XxsBook.d[byte_of(both.d[0], l)], signs, l, words);
    }
    RL_DEVICE static UnitScales scales(const Matrix& w, size_t unit) {
        const uint32_t nibble = between_signs(load<uint32_t>(w.data, unit * 2 + 1));
        const float d = half_value(load<uint16_t>(w.data, w.units * 4 + unit / 8));
        return pair_scales(d * (0.25f * byte_float(nibble) + 0.125f), 0.0f);
    }
};

}  // namespace redline::hip
