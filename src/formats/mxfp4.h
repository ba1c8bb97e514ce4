// 32 numbers in E2M1 under one power of two (OCP microscaling).
#pragma once

#include "base/half.h"

namespace redline::formats {

struct mxfp4 {
    static constexpr const char* name = "MXFP4";
    static constexpr uint32_t gguf_id = 39;
    static constexpr uint32_t block = 32;
    struct Block {
        uint8_t exponent;  // E8M0: 2^(exponent - 127); 255 means NaN there and no file should hold it
        uint8_t q[16];     // low nibbles: elements 0..15; high nibbles: 16..31
    };
    // Twice the value of the E2M1 number, which is an integer.
    RL_HD static int twice(uint32_t nibble) {
        constexpr int8_t values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
        return values[nibble];
    }
    // Half the scale, 2^(exponent - 128): subnormal for 0 and 1.
    RL_HD static float half_scale(uint32_t exponent) {
        return bits_to_float(exponent < 2 ? 0x00200000u << exponent : (exponent - 1) << 23);
    }
    static void set_scale(Block& b, float scale) {
        b.exponent = uint8_t((float_to_bits(scale) >> 23 & 255) + 1);
    }
    RL_HD static float decode(const Block& b, uint32_t i) {
        const uint32_t nibble = (uint32_t(b.q[i % 16]) >> (i / 16 * 4)) & 15;
        return float(twice(nibble)) * half_scale(b.exponent);
    }
};
static_assert(sizeof(mxfp4::Block) == 17);

}  // namespace redline::formats
