// Planes: entries (8 bytes per unit), signs with the scale between them (4), per 256 elements their scale
// (2).
#pragma once

#include "kernels/code_books.h"

namespace redline::hip {

struct iq3_xxs : Quantized<true, 0, false> {
    static constexpr args::Planes kPlanes = {{64, 32, 2}};
    RL_DEVICE static void codes(const Matrix& w, size_t unit, uint32_t (&words)[8]) {
        const auto entries = load<Words2>(w.data, unit);
        const uint32_t signs = even_signs(load<uint32_t>(w.data, w.units * 2 + unit));
        RL_UNROLL
        for (uint32_t k = 0; k < 8; ++k)
            words[k] = signed_levels(kIq3XxsBook.d[byte_of(entries.d[k / 4], k % 4)], signs, k);
    }
    RL_DEVICE static UnitScales scales(const Matrix& w, size_t unit) {
        const uint32_t nibble = between_signs(load<uint32_t>(w.data, w.units * 2 + unit));
        const float d = half_value(load<uint16_t>(w.data, w.units * 6 + unit / 8));
        return pair_scales(d * (0.5f * byte_float(nibble) + 0.25f), 0.0f);
    }
};

}  // namespace redline::hip
