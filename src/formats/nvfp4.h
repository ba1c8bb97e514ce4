// 64 numbers in E2M1, each 16 of them under a scale in E4M3 without a sign.
#pragma once

#include "formats/mxfp4.h"

namespace redline::formats {

struct nvfp4 {
    static constexpr const char* name = "NVFP4";
    static constexpr uint32_t gguf_id = 40;
    static constexpr uint32_t block = 64;
    struct Block {
        uint8_t scales[4];
        uint8_t q[32];  // per 16 elements 8 bytes; low nibbles: the first 8; high nibbles: the others
    };
    // 0x7F stands for NaN in E4M3; here it counts as zero, as does 0.
    RL_HD static float sub_scale(uint8_t byte) {
        const uint32_t exponent = (byte >> 3) & 15, mantissa = byte & 7;
        if (byte == 0x7F) return 0.0f;
        if (exponent == 0) return float(mantissa) * 0x1p-9f;
        return bits_to_float((exponent + 120) << 23 | mantissa << 20);
    }
    // Each scale is a little larger than the one before it.
    static void set_scale(Block& b, float scale) {
        const float normal = scale < 0x1p-6f ? 0x1p-6f : scale;
        for (uint32_t j = 0; j < 4; ++j)
            b.scales[j] = uint8_t((float_to_bits(normal) >> 20) - (120 << 3) + j);
    }
    RL_HD static float decode(const Block& b, uint32_t i) {
        const uint32_t nibble = (uint32_t(b.q[i / 16 * 8 + i % 8]) >> (i % 16 / 8 * 4)) & 15;
        return float(mxfp4::twice(nibble)) * (0.5f * sub_scale(b.scales[i / 16]));
    }
};
static_assert(sizeof(nvfp4::Block) == 36);

}  // namespace redline::formats
