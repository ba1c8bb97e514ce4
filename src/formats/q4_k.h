// 256 nibbles in 8 sub-blocks, each with a six-bit scale and a six-bit minimum.
#pragma once

#include "base/half.h"

namespace redline::formats {

struct q4_k {
    static constexpr const char* name = "Q4_K";
    static constexpr uint32_t gguf_id = 12;
    static constexpr uint32_t block = 256;
    struct Block {
        uint16_t scale;      // IEEE half, of the scales
        uint16_t minimum;    // IEEE half, of the minima
        uint8_t scales[12];  // see sub_scale and sub_minimum
        uint8_t q[128];      // per 64 elements 32 bytes; low nibbles: the first 32; high nibbles: the others
    };
    // Sub-blocks 0..3: six bits of bytes 0..3 (scales) and 4..7 (minima). Sub-blocks 4..7: low and high
    // nibbles of bytes 8..11, under the two top bits of the same bytes 0..7.
    RL_HD static int sub_scale(const uint8_t (&s)[12], uint32_t j) {
        return j < 4 ? s[j] & 63 : (s[j + 4] & 15) | (s[j - 4] >> 6) << 4;
    }
    RL_HD static int sub_minimum(const uint8_t (&s)[12], uint32_t j) {
        return j < 4 ? s[j + 4] & 63 : (s[j + 4] >> 4) | (s[j] >> 6) << 4;
    }
    RL_HD static float decode(const Block& b, uint32_t i) {
        const uint32_t j = i / 32;
        const int q = (b.q[j / 2 * 32 + i % 32] >> (j % 2 * 4)) & 15;
        const float scale = half_to_float(b.scale) * float(sub_scale(b.scales, j));
        const float minimum = half_to_float(b.minimum) * float(sub_minimum(b.scales, j));
        const float scaled = scale * float(q);
        return scaled - minimum;
    }
};
static_assert(sizeof(q4_k::Block) == 144);

}  // namespace redline::formats
