// Twice the E2M1 number by nibble, four to a word: 0 1 2 3 4 6 8 12 and their negatives. All four at once; a table would be
// looked up in memory by every invocation's own index.
uint levels_of(uint nibbles) {
    const uint m = nibbles & 0x01010101u, e0 = (nibbles >> 1) & 0x01010101u, e1 = (nibbles >> 2) & 0x01010101u;
    const uint base = m | (e0 | e1) << 1;
    // Shifted left by e - 1 where that is above zero.
    const uint once = (e1 & ~e0) * 255u, twice = (e1 & e0) * 255u;
    const uint sizes = (base & ~(once | twice)) | (base << 1 & once) | (base << 2 & twice);
    // Zero has no negative: nothing carries into the next byte.
    const uint minus = (nibbles >> 3) & (m | e0 | e1);
    return (sizes ^ minus * 255u) + minus;
}
