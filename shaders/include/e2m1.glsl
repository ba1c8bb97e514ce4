// Twice the E2M1 number by nibble, four to a word.
const uint kLevels[4] = uint[4](0x03020100u, 0x0C080604u, 0xFDFEFF00u, 0xF4F8FAFCu);
uint level_of(uint nibble) {
    return (kLevels[nibble >> 2] >> ((nibble & 3u) * 8u)) & 255u;
}
uint levels_of(uint nibbles) {
    return level_of(byte_of(nibbles, 0)) | level_of(byte_of(nibbles, 1)) << 8 | level_of(byte_of(nibbles, 2)) << 16 |
           level_of(byte_of(nibbles, 3)) << 24;
}
