// IEEE binary32.
#pragma once

#include "kernels/unit.h"

namespace redline::hip {

struct f32 : Floats<f32, uint32_t> {
    RL_DEVICE static float value(uint32_t bits) { return bits_float(bits); }
};

}  // namespace redline::hip
