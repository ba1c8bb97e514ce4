// Planes: nibbles (16 bytes per unit), per 256 elements scale and packed scales (8). Codes as iq4_nl.
#pragma once

#include "kernels/unit.h"

namespace redline::hip {

struct iq4_xs : Quantized<true, 0, false> {
    static constexpr args::Planes kPlanes = {{128, 8}};
    RL_DEVICE static void codes(const Matrix& w, size_t unit, uint32_t (&words)[8]) {
        const auto q = load<Words4>(w.data, unit);
        RL_UNROLL
        for (uint32_t k = 0; k < 4; ++k) {
            const TwoWords both = pick_levels(q.d[k], 0xBFAD9881u, 0xF6EADDCFu, 0x26190D01u, 0x71594535u);
            words[k] = both.below;
            words[k + 4] = both.above;
        }
    }
    RL_DEVICE static UnitScales scales(const Matrix& w, size_t unit) {
        const auto header = load<Words2>(w.data, w.units * 2 + unit / 8);
        const uint32_t j = uint32_t(unit % 8);
        const uint32_t low = (header.d[1] >> (j * 4)) & 15u, high = (header.d[0] >> (16 + j * 2)) & 3u;
        const float d = half_value(uint16_t(header.d[0])) * small_float(int32_t(low | high << 4) - 32);
        return {{d, d}, {0.0f, 0.0f}};
    }
};

}  // namespace redline::hip
