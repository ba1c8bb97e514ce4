// What the formats with code books share. Their tables are for the host; kernels have them as
// backends/shared/code_books.h makes them.
#pragma once

#include "base/half.h"

namespace redline::formats {

// Number j of an entry of eight.
inline int grid_level_of_8(uint16_t entry, uint32_t j) {
    constexpr int8_t levels[4] = {8, 25, 43, 0};  // no entry has the last
    return levels[(entry >> (2 * j)) & 3];
}

// Eight sign bits of which the file has seven: the number of minus signs is even.
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
