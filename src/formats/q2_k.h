// 256 two-bit numbers in 16 sub-blocks, each with a four-bit scale and a four-bit minimum.
#pragma once

#include "base/half.h"

namespace redline::formats {

struct q2_k {
    static constexpr const char* name = "Q2_K";
    static constexpr uint32_t gguf_id = 10;
    static constexpr uint32_t block = 256;
    struct Block {
        uint8_t scales[16];  // low nibble: scale; high nibble: minimum
        uint8_t q[64];     // per 128 elements 32 bytes; bits 2k, 2k + 1 of byte l: element 32k + l of the 128
        uint16_t scale;    // IEEE half, of the scales
        uint16_t minimum;  // IEEE half, of the minima
    };
    RL_HD static float decode(const Block& b, uint32_t i) {
        const int q = (b.q[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2)) & 3;
        const uint8_t packed = b.scales[i / 16];
        const float scale = half_to_float(b.scale) * float(packed & 15);
        const float minimum = half_to_float(b.minimum) * float(packed >> 4);
        const float scaled = scale * float(q);
        return scaled - minimum;
    }
};
static_assert(sizeof(q2_k::Block) == 84);

}  // namespace redline::formats
