// What formats with code books share. A unit has a word of signs: where bit v of byte j is set, element 4v +
// j is negative.
#pragma once

#include "kernels/unit.h"

#include "backends/shared/code_books.h"

namespace redline::hip {

RL_TABLE kIq3XxsBook = levels_to_62(formats::kIq3XxsGrid);
RL_TABLE kIq3SBook = levels_to_15(formats::kIq3SGrid);
RL_TABLE kIq2XxsBook = level_nibbles(formats::kIq2XxsGrid);
RL_TABLE kIq2XsBook = level_nibbles(formats::kIq2XsGrid);
RL_TABLE kIq2SBook = level_nibbles(formats::kIq2SGrid);
RL_TABLE kIq1Book = ternary_pairs(formats::kIq1Grid);

// Of a word whose entries have an even number of minus signs each, so that the sign of element 8l + 7 follows
// from the other seven: its bit, 25 + 2l, is another field's.
RL_DEVICE uint32_t even_signs(uint32_t word) {
    const uint32_t seven = word & 0x55FFFFFFu;
    uint32_t parity = seven ^ seven >> 16;
    parity ^= parity >> 8;
    parity ^= parity >> 1;
    return seven | (parity & 0x55u) << 25;
}
// The four bits of that other field.
RL_DEVICE uint32_t between_signs(uint32_t word) {
    uint32_t bits = (word >> 25) & 0x55u;
    bits = (bits | bits >> 1) & 0x33u;
    return (bits | bits >> 2) & 15u;
}

// Where instructions of three operands have no room for a number, it stands in a register of each lane: there
// are few scalar ones.
RL_DEVICE size_t spare_scalars(size_t number) {
#if defined(__GFX9__)
    return in_each_lane(number);
#else
    return number;
#endif
}

// The levels of word k with their signs. None is zero, so that no byte carries into the next.
RL_DEVICE uint32_t signed_levels(uint32_t levels, uint32_t signs, uint32_t k) {
    const uint32_t minus = (signs >> k) & uint32_t(spare_scalars(0x01010101u));
    return (levels ^ ((minus << 8) - minus)) + minus;
}
// Words 2l and 2l + 1 of a unit whose entry l is this one, of level_nibbles().
RL_DEVICE void put_eight(uint32_t entry, uint32_t signs, uint32_t l, uint32_t (&words)[8]) {
    const auto lower = uint32_t(spare_scalars(0x03030303u)), set = uint32_t(spare_scalars(0x08080808u));
    const uint32_t upper = lower << 4;
    const uint32_t low = (entry & lower) | ((entry << 2) & upper) | set;
    const uint32_t high = ((entry >> 4) & lower) | ((entry >> 2) & upper) | set;
    words[l * 2] = signed_levels(low, signs, l * 2);
    words[l * 2 + 1] = signed_levels(high, signs, l * 2 + 1);
}
// The same of ternary_pairs(): eight times each number, and 2 unless it is moved down.
RL_DEVICE void put_ternary(uint32_t entry, uint32_t down, uint32_t l, uint32_t (&words)[8]) {
    const uint32_t pair = kIq1Book.d[entry / 2] >> (entry % 2 * 4), up = (down - 1) & 0x02020202u;
    words[l * 2] = (pair & 0x03030303u) * 8 + up;
    words[l * 2 + 1] = ((pair >> 2) & 0x03030303u) * 8 + up;
}

}  // namespace redline::hip
