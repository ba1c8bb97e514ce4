// Planes: lower bits of entries (8 bytes per unit), signs (4), per 256 elements scale, packed scales and top
// bits of entries (14).
#pragma once

#include "kernels/code_books.h"

namespace redline::hip {

struct iq3_s : Quantized<true, 0, false> {
    static constexpr args::Planes kPlanes = {{64, 32, 14}};
    RL_DEVICE static void codes(const Matrix& w, size_t unit, uint32_t (&words)[8]) {
        const auto entries = load<Words2>(w.data, unit);
        const uint32_t signs = load<uint32_t>(w.data, w.units * 2 + unit);
        const uint32_t tops = w.data[w.units * 12 + uint32_t(unit / 8) * 14u + 6 + unit % 8];
        RL_UNROLL
        for (uint32_t k = 0; k < 8; ++k) {
            const uint32_t entry = byte_of(entries.d[k / 4], k % 4) | ((tops >> k) & 1u) << 8;
            words[k] = signed_levels(kIq3SBook.d[entry], signs, k);
        }
    }
    RL_DEVICE static UnitScales scales(const Matrix& w, size_t unit) {
        const size_t header = w.units * 6 + uint32_t(unit / 8) * 7u;
        const uint32_t nibbles = load<uint16_t>(w.data, header + 1 + unit / 4 % 2);
        const float d = half_value(load<uint16_t>(w.data, header));
        return pair_scales(d * byte_float(1 + 2 * ((nibbles >> (unit % 4 * 4)) & 15u)), 0.0f);
    }
};

}  // namespace redline::hip
