// The code books of formats as kernels read them, made of those that the host decodes with.
#pragma once

#include "formats/grids/iq1.h"
#include "formats/grids/iq2_s.h"
#include "formats/grids/iq2_xs.h"
#include "formats/grids/iq2_xxs.h"
#include "formats/grids/iq3_s.h"
#include "formats/grids/iq3_xxs.h"

namespace redline {

template <uint32_t kWords>
struct Book {
    uint32_t d[kWords];
};

// Number j of four, of three bits, in byte j.
constexpr uint32_t spread_four(uint32_t e) {
    return (e & 7) | (e & 0x38) << 5 | (e & 0x1C0) << 10 | (e & 0xE00) << 15;
}
// Numbers j and j + 4 of eight, of two bits, in byte j, at bits 0 and 4.
constexpr uint32_t spread_eight(uint32_t e) {
    return (e & 3) | (e & 0xC) << 6 | (e & 0x30) << 12 | (e & 0xC0) << 18 | (e & 0x300) >> 4 |
           (e & 0xC00) << 2 | (e & 0x3000) << 8 | (e & 0xC000) << 14;
}

// Four levels of 4, 12, ... 44, 52, 62.
template <uint32_t kEntries>
constexpr Book<kEntries> levels_to_62(const uint16_t (&grid)[kEntries]) {
    Book<kEntries> book = {};
    for (uint32_t i = 0; i < kEntries; ++i) {
        const uint32_t n = spread_four(grid[i]);
        book.d[i] = n * 8 + 0x04040404u + (((n + 0x01010101u) >> 3) & 0x01010101u) * 2;
    }
    return book;
}
// Four odd levels.
template <uint32_t kEntries>
constexpr Book<kEntries> levels_to_15(const uint16_t (&grid)[kEntries]) {
    Book<kEntries> book = {};
    for (uint32_t i = 0; i < kEntries; ++i) book.d[i] = spread_four(grid[i]) * 2 + 0x01010101u;
    return book;
}
// Eight levels of 8, 25 and 43 as nibbles, their bits 0, 1, 4 and 5: j and j + 4 in byte j.
template <uint32_t kEntries>
constexpr Book<kEntries> level_nibbles(const uint16_t (&grid)[kEntries]) {
    Book<kEntries> book = {};
    for (uint32_t i = 0; i < kEntries; ++i) {
        const uint32_t n = spread_eight(grid[i]);
        book.d[i] = (n & 0x11111111u) * 5 + ((n >> 1) & 0x11111111u) * 11;
    }
    return book;
}
// Eight numbers of levels as nibbles: j and j + 4 in byte j.
template <uint32_t kEntries>
constexpr Book<kEntries> spread_eights(const uint16_t (&grid)[kEntries]) {
    Book<kEntries> book = {};
    for (uint32_t i = 0; i < kEntries; ++i) book.d[i] = spread_eight(grid[i]);
    return book;
}
// Two entries to a word: byte j has numbers j and j + 4 of the first, then of the second, two bits each.
template <uint32_t kEntries>
constexpr Book<kEntries / 2> ternary_pairs(const uint16_t (&grid)[kEntries]) {
    Book<kEntries / 2> book = {};
    for (uint32_t i = 0; i < kEntries; ++i) {
        const uint32_t n = spread_eight(grid[i]);
        book.d[i / 2] |= ((n & 0x03030303u) | ((n >> 2) & 0x0C0C0C0Cu)) << (i % 2 * 4);
    }
    return book;
}

}  // namespace redline
