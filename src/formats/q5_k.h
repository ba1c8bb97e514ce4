// 256 numbers of five bits in 8 sub-blocks, with the scales and minima of Q4_K.
#pragma once

#include "formats/q4_k.h"

namespace redline::formats {

struct q5_k {
    static constexpr const char* name = "Q5_K";
    static constexpr uint32_t gguf_id = 13;
    static constexpr uint32_t block = 256;
    struct Block {
        uint16_t scale;      // IEEE half, of the scales
        uint16_t minimum;    // IEEE half, of the minima
        uint8_t scales[12];  // as in Q4_K
        uint8_t high[32];    // bit i / 32 of byte i % 32: the fifth bit of element i
        uint8_t q[128];      // per 64 elements 32 bytes; low nibbles: the first 32; high nibbles: the others
    };
    RL_HD static float decode(const Block& b, uint32_t i) {
        const uint32_t j = i / 32;
        const int low = (b.q[j / 2 * 32 + i % 32] >> (j % 2 * 4)) & 15;
        const int q = low | ((b.high[i % 32] >> j) & 1) << 4;
        const float scale = half_to_float(b.scale) * float(q4_k::sub_scale(b.scales, j));
        const float minimum = half_to_float(b.minimum) * float(q4_k::sub_minimum(b.scales, j));
        const float scaled = scale * float(q);
        return scaled - minimum;
    }
};
static_assert(sizeof(q5_k::Block) == 176);

}  // namespace redline::formats
