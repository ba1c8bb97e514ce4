// Like IQ1_S, but with a scale for every two entries and a direction for each entry; the block's scale is
// spread over the words of scales.
#pragma once

#include "formats/iq1_s.h"

namespace redline::formats {

struct iq1_m {
    static constexpr const char* name = "IQ1_M";
    static constexpr uint32_t gguf_id = 29;
    static constexpr uint32_t block = 256;
    struct Block {
        uint8_t low[32];     // per 8 elements: the low bits of the entry
        uint8_t high[16];    // nibble j: the three top bits of entry j, and whether it is moved down
        uint16_t scales[4];  // per 64 elements four times three bits, and a nibble of the block's IEEE half
    };
    static void set_scale(Block& b, float scale) {
        const uint32_t half = float_to_half(scale);
        for (int j = 0; j < 4; ++j)
            b.scales[j] = uint16_t((b.scales[j] & 0x0FFF) | ((half >> (4 * j)) & 15) << 12);
    }
    static float decode(const Block& b, uint32_t i) {
        const uint16_t* s = b.scales;
        const auto half = uint16_t(s[0] >> 12 | (s[1] >> 12) << 4 | (s[2] >> 12) << 8 | (s[3] >> 12) << 12);
        const int sub_scale = (s[i / 64] >> (i % 64 / 16 * 3)) & 7;
        const uint32_t high = (uint32_t(b.high[i / 16]) >> (i % 16 / 8 * 4)) & 15;
        const uint32_t entry = b.low[i / 8] | (high & 7) << 8;
        const float scale = half_to_float(half) * float(2 * sub_scale + 1);
        return scale * (float(iq1_s::level(entry, i % 8)) + (high & 8 ? -0.125f : 0.125f));
    }
};
static_assert(sizeof(iq1_m::Block) == 56);

}  // namespace redline::formats
