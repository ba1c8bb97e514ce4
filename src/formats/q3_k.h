// 256 signed three-bit numbers in 16 sub-blocks, each with a six-bit signed scale.
#pragma once

#include "base/half.h"

namespace redline::formats {

struct q3_k {
    static constexpr const char* name = "Q3_K";
    static constexpr uint32_t gguf_id = 11;
    static constexpr uint32_t block = 256;
    struct Block {
        uint8_t high[32];  // bit i / 32 of byte i % 32: the third bit of element i; clear means minus 4
        uint8_t q[64];     // per 128 elements 32 bytes; bits 2k, 2k + 1 of byte l: element 32k + l of the 128
        uint8_t scales[12];  // see sub_scale
        uint16_t scale;      // IEEE half
    };
    // Scale j of 16: low four bits in the nibbles of bytes 0..7, high two in the bit pairs of bytes 8..11.
    RL_HD static int sub_scale(const Block& b, uint32_t j) {
        const int low = (b.scales[j % 8] >> (j / 8 * 4)) & 15;
        const int high = (b.scales[8 + j % 4] >> (j / 4 * 2)) & 3;
        return (low | high << 4) - 32;
    }
    RL_HD static float decode(const Block& b, uint32_t i) {
        const int low = (b.q[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2)) & 3;
        const int high = (b.high[i % 32] >> (i / 32)) & 1;
        const float scale = half_to_float(b.scale) * float(sub_scale(b, i / 16));
        return scale * float(low - (high ? 0 : 4));
    }
};
static_assert(sizeof(q3_k::Block) == 110);

}  // namespace redline::formats
