// 256 numbers as 32 entries of a code book with signs; each two of them have a four-bit scale.
#pragma once

#include "formats/grids/grid.h"
#include "formats/grids/iq2_xs.h"

namespace redline::formats {

struct iq2_xs {
    static constexpr const char* name = "IQ2_XS";
    static constexpr uint32_t gguf_id = 17;
    static constexpr uint32_t block = 256;
    struct Block {
        uint16_t scale;     // IEEE half
        uint16_t q[32];     // per 8 elements: nine bits of entry, seven signs
        uint8_t scales[8];  // nibble j: of elements 16j on
    };
    static float decode(const Block& b, uint32_t i) {
        const uint16_t q = b.q[i / 8];
        const int nibble = (b.scales[i / 32] >> (i % 32 / 16 * 4)) & 15;
        const float scale = half_to_float(b.scale) * (0.5f + float(nibble)) * 0.25f;
        return scale * signed_level(grid_level_of_8(kIq2XsGrid[q & 511], i % 8), even_signs(q >> 9), i % 8);
    }
};
static_assert(sizeof(iq2_xs::Block) == 74);

}  // namespace redline::formats
