// bfloat16: the upper half of a binary32.
#pragma once

#include "kernels/unit.h"

namespace redline::hip {

struct bf16 : Floats<bf16, uint16_t> {
    RL_DEVICE static float value(uint16_t bits) { return bits_float(uint32_t(bits) << 16); }
};

}  // namespace redline::hip
