// Plain binary32.
#pragma once

#include "base/half.h"

namespace redline::formats {

struct f32 {
    static constexpr const char* name = "F32";
    static constexpr uint32_t gguf_id = 0;
    static constexpr uint32_t block = 1;
    struct Block {
        uint32_t bits;
    };
    RL_HD static float decode(const Block& b, uint32_t) { return bits_to_float(b.bits); }
};
static_assert(sizeof(f32::Block) == 4);

}  // namespace redline::formats
