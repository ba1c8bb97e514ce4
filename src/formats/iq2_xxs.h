// 256 numbers as 32 entries of a code book with signs; each four of them have a four-bit scale.
#pragma once

#include "formats/grids/grid.h"
#include "formats/grids/iq2_xxs.h"

namespace redline::formats {

struct iq2_xxs {
    static constexpr const char* name = "IQ2_XXS";
    static constexpr uint32_t gguf_id = 16;
    static constexpr uint32_t block = 256;
    struct Block {
        uint16_t scale;  // IEEE half
        // Per 32 elements four bytes, the entries, then 32 bits: four times seven signs, four bits of scale.
        uint16_t q[32];
    };
    static float decode(const Block& b, uint32_t i) {
        const uint16_t* q = b.q + i / 32 * 4;
        const uint32_t part = i % 32 / 8, word = uint32_t(q[2]) | uint32_t(q[3]) << 16;
        const uint16_t entry = kIq2XxsGrid[(q[part / 2] >> (part % 2 * 8)) & 255];
        const float scale = half_to_float(b.scale) * (0.5f + float(word >> 28)) * 0.25f;
        const uint32_t signs = even_signs((word >> (7 * part)) & 127);
        return scale * signed_level(grid_level_of_8(entry, i % 8), signs, i % 8);
    }
};
static_assert(sizeof(iq2_xxs::Block) == 66);

}  // namespace redline::formats
