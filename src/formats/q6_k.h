// 256 numbers of six bits around 32 in 16 sub-blocks, each with a signed eight-bit scale.
#pragma once

#include "base/half.h"

namespace redline::formats {

struct q6_k {
    static constexpr const char* name = "Q6_K";
    static constexpr uint32_t gguf_id = 14;
    static constexpr uint32_t block = 256;
    struct Block {
        uint8_t low[128];  // per 128 elements 64 bytes; low nibbles: the first 64; high nibbles: the others
        uint8_t high[64];  // per 128 elements 32 bytes; bits 2k, 2k + 1 of byte l: element 32k + l of the 128
        int8_t scales[16];  // of 16 elements each
        uint16_t scale;     // IEEE half, of the scales
    };
    RL_HD static float decode(const Block& b, uint32_t i) {
        const uint32_t half = i / 128;
        const int low = (b.low[half * 64 + i % 64] >> (i % 128 / 64 * 4)) & 15;
        const int high = (b.high[half * 32 + i % 32] >> (i % 128 / 32 * 2)) & 3;
        const float scale = half_to_float(b.scale) * float(b.scales[i / 16]);
        return scale * float((low | high << 4) - 32);
    }
};
static_assert(sizeof(q6_k::Block) == 210);

}  // namespace redline::formats
