// What formats with code books share. Books lie behind the planes: see backends/shared/code_books.h.
uint book_word(uint i) {
    return w32[0].d[(weight_units / 8 * FORMAT_BLOCK_BYTES + 3) / 4 + i];
}

// A unit of most has a word of signs: where bit v of byte j is set, element 4v + j is negative.

// Of a word whose entries have an even number of minus signs each, so that the sign of element 8l + 7 follows from the
// other seven: its bit, 25 + 2l, is another field's.
uint even_signs(uint word) {
    const uint seven = word & 0x55FFFFFFu;
    uint parity = seven ^ seven >> 16;
    parity ^= parity >> 8;
    parity ^= parity >> 1;
    return seven | (parity & 0x55u) << 25;
}
// The four bits of that other field.
uint between_signs(uint word) {
    uint bits = word >> 25 & 0x55u;
    bits = (bits | bits >> 1) & 0x33u;
    return (bits | bits >> 2) & 15u;
}

// The levels of word k with their signs. None is zero, so that no byte carries into the next.
uint signed_levels(uint levels, uint signs, uint k) {
    const uint minus = signs >> k & 0x01010101u;
    return (levels ^ ((minus << 8) - minus)) + minus;
}

// Four levels of 8, 25 and 43 by the lower nibbles of an entry's bytes, which are their bits 0, 1, 4 and 5.
uint levels_of_nibbles(uint entry) {
    return (entry & 0x03030303u) | (entry << 2 & 0x30303030u) | 0x08080808u;
}
// Word k of a unit whose entry there is this one, of eight levels.
uint word_of_eight(uint entry, uint signs, uint k) {
    return signed_levels(levels_of_nibbles(entry >> (k & 1u) * 4u), signs, k);
}

// Word k of the codes of a unit whose entry there is this one, of eight numbers of -1, 0 and 1: eight times the number,
// and one more or less, plus 9.
uint ternary_codes(uint entry, uint k, uint down) {
    const uint numbers = book_word(entry >> 1) >> ((entry & 1u) * 4u + (k & 1u) * 2u) & 0x03030303u;
    return (numbers << 3) + (down - 1u & 0x02020202u);
}
