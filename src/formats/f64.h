// Binary64, rounded to binary32.
#pragma once

#include "base/half.h"

#include <bit>

namespace redline::formats {

struct f64 {
    static constexpr const char* name = "F64";
    static constexpr uint32_t gguf_id = 28;
    static constexpr uint32_t block = 1;
    struct Block {
        uint32_t low, high;
    };
    static float decode(const Block& b, uint32_t) {
        return float(std::bit_cast<double>(uint64_t(b.high) << 32 | b.low));
    }
};
static_assert(sizeof(f64::Block) == 8);

}  // namespace redline::formats
