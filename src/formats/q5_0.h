// 32 numbers of five bits around 16 under one half-precision scale.
#pragma once

#include "base/half.h"

namespace redline::formats {

struct q5_0 {
    static constexpr const char* name = "Q5_0";
    static constexpr uint32_t gguf_id = 6;
    static constexpr uint32_t block = 32;
    struct Block {
        uint16_t scale;   // IEEE half, as stored
        uint8_t high[4];  // bit i of these 32: the fifth bit of element i
        uint8_t q[16];    // low nibbles: elements 0..15; high nibbles: 16..31
    };
    RL_HD static float decode(const Block& b, uint32_t i) {
        const int low = (b.q[i % 16] >> (i / 16 * 4)) & 15;
        const int q = low | ((b.high[i / 8] >> (i % 8)) & 1) << 4;
        return float(q - 16) * half_to_float(b.scale);
    }
};
static_assert(sizeof(q5_0::Block) == 22);

}  // namespace redline::formats
