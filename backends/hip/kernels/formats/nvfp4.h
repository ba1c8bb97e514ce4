// Planes: nibbles (16 bytes per unit), scales in E4M3 without a sign (2). Codes are twice the E2M1 number
// under half the scale.
#pragma once

#include "kernels/unit.h"

namespace redline::hip {

struct nvfp4 : Quantized<true, 0, false> {
    static constexpr args::Planes kPlanes = {{128, 16}};
    static constexpr bool kHalves = true;
    // Half of an E4M3 number, whose bits are those of a half that is 256 times smaller.
    RL_DEVICE static float half_scale(uint32_t byte) { return half_value(uint16_t(byte << 7)) * 128.0f; }
    RL_DEVICE static void codes(const Matrix& w, size_t unit, uint32_t (&words)[8]) {
        const auto q = load<Words4>(w.data, unit);
        RL_UNROLL
        for (uint32_t k = 0; k < 4; ++k) {
            const TwoWords both = pick_e2m1(q.d[k]);
            words[k] = both.below;
            words[k + 4] = both.above;
        }
    }
    RL_DEVICE static UnitScales scales(const Matrix& w, size_t unit) {
        const uint32_t pair = load<uint16_t>(w.data, w.units * 8 + unit);
        return {{half_scale(pair & 255u), half_scale(pair >> 8)}, {0.0f, 0.0f}};
    }
};

}  // namespace redline::hip
