// 32 nibbles that choose from 16 unevenly spaced levels, under one half-precision scale.
#pragma once

#include "base/half.h"

namespace redline::formats {

struct iq4_nl {
    static constexpr const char* name = "IQ4_NL";
    static constexpr uint32_t gguf_id = 20;
    static constexpr uint32_t block = 32;
    struct Block {
        uint16_t scale;  // IEEE half, as stored
        uint8_t q[16];   // low nibbles: elements 0..15; high nibbles: 16..31
    };
    // Inside the function, so that device code finds it too.
    RL_HD static int level(uint32_t nibble) {
        constexpr int8_t levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                       1,    13,   25,  38,  53,  69,  89,  113};
        return levels[nibble];
    }
    RL_HD static float decode(const Block& b, uint32_t i) {
        const uint32_t nibble = (uint32_t(b.q[i % 16]) >> (i / 16 * 4)) & 15;
        return half_to_float(b.scale) * float(level(nibble));
    }
};
static_assert(sizeof(iq4_nl::Block) == 18);

}  // namespace redline::formats
