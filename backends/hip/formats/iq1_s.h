// Planes: lower bits of entries (4 bytes per unit), their top bits, scale and direction (2), per 256 elements
// their scale (2). Codes are eight times -1, 0 or 1, and one more or less, under an eighth of the scale.
#pragma once

#include "kernels/code_books.h"

namespace redline::hip {

struct iq1_s : Quantized<false, 9, false> {
    static constexpr args::Planes kPlanes = {{32, 16, 2}};
    RL_DEVICE static void codes(const Matrix& w, size_t unit, uint32_t (&words)[8]) {
        const uint32_t low = load<uint32_t>(w.data, unit), high = load<uint16_t>(w.data, w.units * 2 + unit);
        RL_UNROLL
        for (uint32_t l = 0; l < 4; ++l)
            put_ternary(byte_of(low, l) | ((high >> (3 * l)) & 7u) << 8, high >> 15, l, words);
    }
    RL_DEVICE static UnitScales scales(const Matrix& w, size_t unit) {
        const uint32_t high = load<uint16_t>(w.data, w.units * 2 + unit);
        const float d = half_value(load<uint16_t>(w.data, w.units * 3 + unit / 8));
        return pair_scales(d * (0.25f * byte_float((high >> 12) & 7u) + 0.125f), 0.0f);
    }
};

}  // namespace redline::hip
