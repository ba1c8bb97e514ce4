// Shared parts of the formats with code books. These tables are for the host; kernels use those of
// backends/shared/code_books.h.
#pragma once

#include "base/half.h"

namespace redline::formats {

// Number j of an entry of eight.
inline int grid_level_of_8(uint16_t entry, uint32_t j) {
    constexpr int8_t levels[4] = {8, 25, 43, 0};  // no entry contains the last
    return levels[(entry >> (2 * j)) & 3];
}

// The eight signs that seven stored bits stand for: the number of minus signs is even.
inline uint32_t even_signs(uint32_t seven) {
    uint32_t parity = seven ^ (seven >> 4);
    parity ^= parity >> 2;
    parity ^= parity >> 1;
    return seven | (parity & 1) << 7;
}

inline float signed_level(int level, uint32_t signs, uint32_t j) {
    return float(level * (1 - 2 * int((signs >> j) & 1)));
}

}  // namespace redline::formats
