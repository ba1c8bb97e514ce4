// 256 numbers of two bits, mostly -1, 0 and 1, under one scale.
#pragma once

#include "base/half.h"

namespace redline::formats {

struct tq2_0 {
    static constexpr const char* name = "TQ2_0";
    static constexpr uint32_t gguf_id = 35;
    static constexpr uint32_t block = 256;
    struct Block {
        uint8_t q[64];   // per 128 elements 32 bytes; bits 2k, 2k + 1 of byte l: element 32k + l of the 128
        uint16_t scale;  // IEEE half
    };
    RL_HD static float decode(const Block& b, uint32_t i) {
        const int q = (b.q[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2)) & 3;
        return float(q - 1) * half_to_float(b.scale);
    }
};
static_assert(sizeof(tq2_0::Block) == 66);

}  // namespace redline::formats
