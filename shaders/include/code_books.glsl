// What formats with code books share; FORMAT_BOOK says how many entries. Books lie behind the planes: see
// backends/shared/code_books.h. Kernels of one token (SHARED_BOOK) copy theirs to shared memory first, in a form that
// takes fewer steps; share_book() wants a barrier behind it.
uint stored_word(uint i) {
    return w32[0].d[(weight_units / 8 * FORMAT_BLOCK_BYTES + 3) / 4 + i];
}

#if defined(BOOK_OF_EIGHTS)
// Four levels of 8, 25 and 43 by the lower nibbles of an entry's bytes, which are their bits 0, 1, 4 and 5.
uint levels_of_nibbles(uint entry) {
    return (entry & 0x03030303u) | (entry << 2 & 0x30303030u) | 0x08080808u;
}
uvec2 stored_levels(uint entry) {
    const uint word = stored_word(entry);
    return uvec2(levels_of_nibbles(word), levels_of_nibbles(word >> 4));
}
#define BOOK_ENTRY uvec2
#elif defined(BOOK_OF_FOURS)
uint stored_levels(uint entry) { return stored_word(entry); }
#define BOOK_ENTRY uint
#else
// Numbers of 0, 1 and 2: j and j + 4 of eight in byte j, at bits 0 and 2.
uint stored_numbers(uint entry) { return stored_word(entry >> 1) >> (entry & 1u) * 4u & 0x0F0F0F0Fu; }
// Four times the numbers, at bits 0 and 4.
uint stored_levels(uint entry) {
    const uint numbers = stored_numbers(entry);
    return (numbers & 0x03030303u) << 2 | (numbers & 0x0C0C0C0Cu) << 4;
}
#define BOOK_ENTRY uint
#endif

#ifdef SHARED_BOOK
shared BOOK_ENTRY own_book[FORMAT_BOOK];
void share_book() {
    for (uint i = gl_LocalInvocationID.x; i < FORMAT_BOOK; i += gl_WorkGroupSize.x) own_book[i] = stored_levels(i);
}
BOOK_ENTRY levels_of(uint entry) { return own_book[entry]; }
#else
BOOK_ENTRY levels_of(uint entry) { return stored_levels(entry); }
#endif

// A unit of most has a word of signs: where bit l of nibble 2j is set, element 8l + j is negative, of nibble 2j + 1
// element 8l + 4 + j.

// Of a word whose eights have an even number of minus signs each, so that the first of each follows from the other seven:
// its bit, in the lowest nibble, is another field's.
uint even_signs(uint word) {
    uint parity = word ^ word >> 16;
    parity ^= parity >> 8;
    parity ^= parity >> 4;
    return word ^ (parity & 15u);
}

// The levels of word k with their signs. None is zero, so that no byte carries into the next.
uint signed_levels(uint levels, uint signs, uint k) {
    const uint minus = signs >> (k >> 1) + (k & 1u) * 4u & 0x01010101u;
    return (levels ^ ((minus << 8) - minus)) + minus;
}

#if defined(BOOK_OF_EIGHTS)
// Word k of a unit whose entry there has these levels.
uint word_of_eight(uvec2 levels, uint signs, uint k) {
    return signed_levels((k & 1u) == 0u ? levels.x : levels.y, signs, k);
}
#elif !defined(BOOK_OF_FOURS)
// Word k of the codes of a unit whose entry there is this one. In shared memory: four times the number, and one unless it is
// moved down, where `ones` says so (0x11111111). Else twice that.
#ifdef SHARED_BOOK
uint ternary_codes(uint entry, uint k, uint ones) {
    return (levels_of(entry) | ones) >> (k & 1u) * 4u & 0x0F0F0F0Fu;
}
#else
uint ternary_codes(uint entry, uint k, uint down) {
    return ((stored_numbers(entry) >> (k & 1u) * 2u & 0x03030303u) << 3) + (down - 1u & 0x02020202u);
}
#endif
#endif
