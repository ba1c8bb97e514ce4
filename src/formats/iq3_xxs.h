// 256 numbers as 64 entries of a code book with signs; each eight of them have a four-bit scale.
#pragma once

#include "formats/grids/grid.h"
#include "formats/grids/iq3_xxs.h"

namespace redline::formats {

struct iq3_xxs {
    static constexpr const char* name = "IQ3_XXS";
    static constexpr uint32_t gguf_id = 18;
    static constexpr uint32_t block = 256;
    struct Block {
        uint16_t scale;      // IEEE half
        uint8_t q[64];       // per 4 elements: the entry
        uint16_t words[16];  // per 32 elements two, low first: four times seven signs, four bits of scale
    };
    static float decode(const Block& b, uint32_t i) {
        constexpr int8_t levels[8] = {4, 12, 20, 28, 36, 44, 52, 62};
        const uint16_t* words = b.words + i / 32 * 2;
        const uint32_t word = uint32_t(words[0]) | uint32_t(words[1]) << 16;
        const int level = levels[(kIq3XxsGrid[b.q[i / 4]] >> (i % 4 * 3)) & 7];
        const float scale = half_to_float(b.scale) * (0.5f + float(word >> 28)) * 0.5f;
        return scale * signed_level(level, even_signs((word >> (i % 32 / 8 * 7)) & 127), i % 8);
    }
};
static_assert(sizeof(iq3_xxs::Block) == 98);

}  // namespace redline::formats
