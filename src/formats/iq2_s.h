// 256 numbers as 32 entries of a code book with eight signs each; each two of them have a four-bit scale.
#pragma once

#include "formats/grids/grid.h"
#include "formats/grids/iq2_s.h"

namespace redline::formats {

struct iq2_s {
    static constexpr const char* name = "IQ2_S";
    static constexpr uint32_t gguf_id = 22;
    static constexpr uint32_t block = 256;
    struct Block {
        uint16_t scale;     // IEEE half
        uint8_t low[32];    // per 8 elements: the low bits of the entry
        uint8_t signs[32];  // per 8 elements
        uint8_t high[8];    // bits 2k, 2k + 1 of byte j: the top bits of entry 4j + k
        uint8_t scales[8];  // nibble j: of elements 16j on
    };
    static float decode(const Block& b, uint32_t i) {
        const uint32_t part = i / 8;
        const uint32_t entry = b.low[part] | ((uint32_t(b.high[part / 4]) >> (part % 4 * 2)) & 3) << 8;
        const int nibble = (b.scales[i / 32] >> (i % 32 / 16 * 4)) & 15;
        const float scale = half_to_float(b.scale) * (0.5f + float(nibble)) * 0.25f;
        return scale * signed_level(grid_level_of_8(kIq2SGrid[entry], i % 8), b.signs[part], i % 8);
    }
};
static_assert(sizeof(iq2_s::Block) == 82);

}  // namespace redline::formats
