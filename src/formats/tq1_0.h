// 256 numbers of -1, 0 and 1 under one scale, five to a byte.
#pragma once

#include "base/half.h"

namespace redline::formats {

struct tq1_0 {
    static constexpr const char* name = "TQ1_0";
    static constexpr uint32_t gguf_id = 34;
    static constexpr uint32_t block = 256;
    struct Block {
        // Digits to the base 3 as a fraction of 256. Digit n of bytes 0..31: elements 32n on; of
        // bytes 32..47: elements 160 + 16n on.
        uint8_t q[48];
        uint8_t last[4];  // the same with four digits: elements 240 + 4n on
        uint16_t scale;   // IEEE half
    };
    RL_HD static int digit(uint8_t byte, uint32_t n) {
        for (; n > 0; --n) byte = uint8_t(byte * 3);
        return (byte * 3) >> 8;
    }
    RL_HD static int trit(const Block& b, uint32_t i) {
        if (i < 160) return digit(b.q[i % 32], i / 32);
        if (i < 240) return digit(b.q[32 + i % 16], (i - 160) / 16);
        return digit(b.last[i % 4], (i - 240) / 4);
    }
    RL_HD static float decode(const Block& b, uint32_t i) {
        return float(trit(b, i) - 1) * half_to_float(b.scale);
    }
};
static_assert(sizeof(tq1_0::Block) == 54);

}  // namespace redline::formats
