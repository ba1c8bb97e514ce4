// IEEE binary16.
#pragma once

#include "base/half.h"

namespace redline::formats {

struct f16 {
    static constexpr const char* name = "F16";
    static constexpr uint32_t gguf_id = 1;
    static constexpr uint32_t block = 1;
    struct Block {
        uint16_t half;
    };
    RL_HD static float decode(const Block& b, uint32_t) { return half_to_float(b.half); }
};
static_assert(sizeof(f16::Block) == 2);

}  // namespace redline::formats
