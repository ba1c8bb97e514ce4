// IEEE binary16.
#pragma once

#include "kernels/unit.h"

namespace redline::hip {

struct f16 : Floats<f16, uint16_t> {
    static constexpr bool kHalfs = true;
    RL_DEVICE static float value(uint16_t bits) { return half_value(bits); }
};

}  // namespace redline::hip
