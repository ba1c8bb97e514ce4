// 64 numbers from -1 to 2 under one scale.
#pragma once

#include "base/half.h"

namespace redline::formats {

struct q2_0 {
    static constexpr const char* name = "Q2_0";
    static constexpr uint32_t gguf_id = 42;
    static constexpr uint32_t block = 64;
    struct Block {
        uint16_t scale;  // IEEE half
        uint8_t q[16];   // bits 2k, 2k + 1 of byte j: element 4j + k
    };
    RL_HD static float decode(const Block& b, uint32_t i) {
        return float(((b.q[i / 4] >> (i % 4 * 2)) & 3) - 1) * half_to_float(b.scale);
    }
};
static_assert(sizeof(q2_0::Block) == 18);

}  // namespace redline::formats
