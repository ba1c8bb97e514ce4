// 256 numbers as 64 entries of a code book with a sign for each number; each eight of them have a four-bit
// scale.
#pragma once

#include "formats/grids/grid.h"
#include "formats/grids/iq3_s.h"

namespace redline::formats {

struct iq3_s {
    static constexpr const char* name = "IQ3_S";
    static constexpr uint32_t gguf_id = 21;
    static constexpr uint32_t block = 256;
    struct Block {
        uint16_t scale;     // IEEE half
        uint8_t low[64];    // per 4 elements: the low bits of the entry
        uint8_t high[8];    // bit k of byte j: the top bit of entry 8j + k
        uint8_t signs[32];  // per 8 elements
        uint8_t scales[4];  // nibble j: of elements 32j on
    };
    static float decode(const Block& b, uint32_t i) {
        const uint32_t part = i / 4;
        const uint32_t entry = b.low[part] | ((uint32_t(b.high[part / 8]) >> (part % 8)) & 1) << 8;
        const int level = 1 + 2 * ((kIq3SGrid[entry] >> (i % 4 * 3)) & 7);
        const int nibble = (b.scales[i / 64] >> (i % 64 / 32 * 4)) & 15;
        const float scale = half_to_float(b.scale) * float(1 + 2 * nibble);
        return scale * signed_level(level, b.signs[i / 8], i % 8);
    }
};
static_assert(sizeof(iq3_s::Block) == 110);

}  // namespace redline::formats
