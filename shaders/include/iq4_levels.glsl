// The levels of IQ4_NL and IQ4_XS by nibble, four to a word. By selections: a table would be looked up in memory by every
// invocation's own index.
uint level_of(uint nibble) {
    const bool second = (nibble & 4u) != 0u;
    const uint low = mix(0xBFAD9881u, 0xF6EADDCFu, second), high = mix(0x26190D01u, 0x71594535u, second);
    return (mix(low, high, nibble >= 8u) >> ((nibble & 3u) * 8u)) & 255u;
}
uint levels_of(uint nibbles) {
    return level_of(byte_of(nibbles, 0)) | level_of(byte_of(nibbles, 1)) << 8 | level_of(byte_of(nibbles, 2)) << 16 |
           level_of(byte_of(nibbles, 3)) << 24;
}
