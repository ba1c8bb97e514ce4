// 32 signed bytes under one half-precision scale.
#pragma once

#include "base/half.h"

namespace redline::formats {

struct q8_0 {
    static constexpr const char* name = "Q8_0";
    static constexpr uint32_t gguf_id = 8;
    static constexpr uint32_t block = 32;
    struct Block {
        uint16_t scale;  // IEEE half, as stored
        int8_t q[32];
    };
    RL_HD static float decode(const Block& b, uint32_t i) { return half_to_float(b.scale) * float(b.q[i]); }
};
static_assert(sizeof(q8_0::Block) == 34);

}  // namespace redline::formats
