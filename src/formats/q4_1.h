// 32 nibbles under one half-precision scale, over one half-precision minimum.
#pragma once

#include "base/half.h"

namespace redline::formats {

struct q4_1 {
    static constexpr const char* name = "Q4_1";
    static constexpr uint32_t gguf_id = 3;
    static constexpr uint32_t block = 32;
    struct Block {
        uint16_t scale;    // IEEE half, as stored
        uint16_t minimum;  // IEEE half
        uint8_t q[16];     // low nibbles: elements 0..15; high nibbles: 16..31
    };
    RL_HD static float decode(const Block& b, uint32_t i) {
        const int q = (b.q[i % 16] >> (i / 16 * 4)) & 15;
        const float scaled = float(q) * half_to_float(b.scale);
        return scaled + half_to_float(b.minimum);
    }
};
static_assert(sizeof(q4_1::Block) == 20);

}  // namespace redline::formats
