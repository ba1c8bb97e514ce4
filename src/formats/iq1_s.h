// 256 numbers as 32 entries of a code book of -1, 0 and 1, moved by an eighth up or down; each four entries
// have a three-bit scale.
#pragma once

#include "base/half.h"
#include "formats/grids/iq1.h"

namespace redline::formats {

struct iq1_s {
    static constexpr const char* name = "IQ1_S";
    static constexpr uint32_t gguf_id = 19;
    static constexpr uint32_t block = 256;
    struct Block {
        uint16_t scale;    // IEEE half
        uint8_t low[32];   // per 8 elements: the low bits of the entry
        uint16_t high[8];  // per 32 elements: four times the three top bits, three bits of scale, one: down
    };
    // Number j of an entry.
    static int level(uint32_t entry, uint32_t j) { return int((kIq1Grid[entry] >> (2 * j)) & 3) - 1; }
    static float decode(const Block& b, uint32_t i) {
        const uint32_t high = b.high[i / 32];
        const uint32_t entry = b.low[i / 8] | ((high >> (i % 32 / 8 * 3)) & 7) << 8;
        const float scale = half_to_float(b.scale) * float(2 * ((high >> 12) & 7) + 1);
        return scale * (float(level(entry, i % 8)) + (high & 0x8000 ? -0.125f : 0.125f));
    }
};
static_assert(sizeof(iq1_s::Block) == 50);

}  // namespace redline::formats
