// 32 nibbles around 8 under one half-precision scale.
#pragma once

#include "base/half.h"

namespace redline::formats {

struct q4_0 {
    static constexpr const char* name = "Q4_0";
    static constexpr uint32_t gguf_id = 2;
    static constexpr uint32_t block = 32;
    struct Block {
        uint16_t scale;  // IEEE half, as stored
        uint8_t q[16];   // low nibbles: elements 0..15; high nibbles: 16..31
    };
    RL_HD static float decode(const Block& b, uint32_t i) {
        const int q = (b.q[i % 16] >> (i / 16 * 4)) & 15;
        return float(q - 8) * half_to_float(b.scale);
    }
};
static_assert(sizeof(q4_0::Block) == 18);

}  // namespace redline::formats
