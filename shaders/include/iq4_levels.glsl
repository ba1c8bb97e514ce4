// The levels of IQ4_NL and IQ4_XS by nibble, four to a word. By selections: a table would be looked up in memory by every
// invocation's own index. Kernels of one token (SHARED_BOOK), where decoding is most of the work, have one in shared memory, of
// two levels by byte; share_book() wants a barrier behind it.
uint level_of(uint nibble) {
    const bool second = (nibble & 4u) != 0u;
    const uint low = mix(0xBFAD9881u, 0xF6EADDCFu, second), high = mix(0x26190D01u, 0x71594535u, second);
    return (mix(low, high, nibble >= 8u) >> ((nibble & 3u) * 8u)) & 255u;
}
uint levels_of(uint nibbles) {
    return level_of(byte_of(nibbles, 0)) | level_of(byte_of(nibbles, 1)) << 8 | level_of(byte_of(nibbles, 2)) << 16 |
           level_of(byte_of(nibbles, 3)) << 24;
}
// By the lower nibbles of a word's bytes, and by the upper ones.
#ifdef SHARED_BOOK
#define FORMAT_BOOK 256
shared uint own_book[FORMAT_BOOK];
void share_book() {
    for (uint i = gl_LocalInvocationID.x; i < FORMAT_BOOK; i += gl_WorkGroupSize.x)
        own_book[i] = level_of(i & 15u) | level_of(i >> 4) << 16;
}
uvec2 both_levels(uint q) {
    const uint first = own_book[q & 255u] | own_book[q >> 8 & 255u] << 8,
               second = own_book[q >> 16 & 255u] | own_book[q >> 24] << 8;
    return uvec2((first & 0xFFFFu) | second << 16, first >> 16 | (second & 0xFFFF0000u));
}
#else
uvec2 both_levels(uint q) { return uvec2(levels_of(q & 0x0F0F0F0Fu), levels_of((q >> 4) & 0x0F0F0F0Fu)); }
#endif
