// bfloat16: the upper half of a binary32.
#pragma once

#include "base/half.h"

namespace redline::formats {

struct bf16 {
    static constexpr const char* name = "BF16";
    static constexpr uint32_t gguf_id = 30;
    static constexpr uint32_t block = 1;
    struct Block {
        uint16_t bits;
    };
    RL_HD static float decode(const Block& b, uint32_t) { return bfloat_to_float(b.bits); }
};
static_assert(sizeof(bf16::Block) == 2);

}  // namespace redline::formats
