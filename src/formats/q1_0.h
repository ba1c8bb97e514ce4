// 128 signs under one scale.
#pragma once

#include "base/half.h"

namespace redline::formats {

struct q1_0 {
    static constexpr const char* name = "Q1_0";
    static constexpr uint32_t gguf_id = 41;
    static constexpr uint32_t block = 128;
    struct Block {
        uint16_t scale;  // IEEE half
        uint8_t q[16];   // bit k of byte j: element 8j + k; set for +
    };
    RL_HD static float decode(const Block& b, uint32_t i) {
        return float(2 * ((b.q[i / 8] >> (i % 8)) & 1) - 1) * half_to_float(b.scale);
    }
};
static_assert(sizeof(q1_0::Block) == 18);

}  // namespace redline::formats
