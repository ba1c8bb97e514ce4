// 32 numbers of five bits under one half-precision scale, over one half-precision minimum.
#pragma once

#include "base/half.h"

namespace redline::formats {

struct q5_1 {
    static constexpr const char* name = "Q5_1";
    static constexpr uint32_t gguf_id = 7;
    static constexpr uint32_t block = 32;
    struct Block {
        uint16_t scale;    // IEEE half, as stored
        uint16_t minimum;  // IEEE half
        uint8_t high[4];   // bit i of these 32: the fifth bit of element i
        uint8_t q[16];     // low nibbles: elements 0..15; high nibbles: 16..31
    };
    RL_HD static float decode(const Block& b, uint32_t i) {
        const int low = (b.q[i % 16] >> (i / 16 * 4)) & 15;
        const int q = low | ((b.high[i / 8] >> (i % 8)) & 1) << 4;
        const float scaled = float(q) * half_to_float(b.scale);
        return scaled + half_to_float(b.minimum);
    }
};
static_assert(sizeof(q5_1::Block) == 24);

}  // namespace redline::formats
