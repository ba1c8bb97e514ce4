// E2M1 numbers by the nibbles that backends/shared/layout.cpp has for them. Twice the number, plus 13, is the nibble, plus 3
// where its bits 0 and 3 are set, plus 7 unless bit 0 is set and bit 1 is not. What is added fits a nibble, so that it is found
// for eight at once; a table would be looked up in memory by every invocation's own index.
#define FORMAT_BIAS 13
uint added_to(uint q) {
    const uint both = q & q >> 3 & 0x11111111u, most = (~q | q >> 1) & 0x11111111u;
    return (both << 1) + both + (most << 3) - most;
}
// Of the lower nibbles of a word's bytes, and with a `shift` of 4 of the upper ones.
uint codes_of(uint q, uint shift) {
    return (q >> shift & 0x0F0F0F0Fu) + (added_to(q) >> shift & 0x0F0F0F0Fu);
}
