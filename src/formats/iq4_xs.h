// 256 nibbles on the levels of IQ4_NL in 8 sub-blocks, each with a six-bit signed scale.
#pragma once

#include "formats/iq4_nl.h"

namespace redline::formats {

struct iq4_xs {
    static constexpr const char* name = "IQ4_XS";
    static constexpr uint32_t gguf_id = 23;
    static constexpr uint32_t block = 256;
    struct Block {
        uint16_t scale;         // IEEE half
        uint16_t scales_high;   // bits 2j, 2j + 1: the top bits of scale j
        uint8_t scales_low[4];  // nibble j: the low bits of scale j
        uint8_t q[128];         // per 32 elements 16 bytes, as in IQ4_NL
    };
    RL_HD static int sub_scale(const Block& b, uint32_t j) {
        const int low = (b.scales_low[j / 2] >> (j % 2 * 4)) & 15;
        const int high = (b.scales_high >> (j * 2)) & 3;
        return (low | high << 4) - 32;
    }
    RL_HD static float decode(const Block& b, uint32_t i) {
        const uint32_t nibble = (uint32_t(b.q[i / 32 * 16 + i % 16]) >> (i % 32 / 16 * 4)) & 15;
        const float scale = half_to_float(b.scale) * float(sub_scale(b, i / 32));
        return scale * float(iq4_nl::level(nibble));
    }
};
static_assert(sizeof(iq4_xs::Block) == 136);

}  // namespace redline::formats
