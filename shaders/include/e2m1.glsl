// Twice the E2M1 number by nibble, four to a word, whatever the bits above are: 0 1 2 3 4 6 8 12 and their negatives. All four
// at once; a table would be looked up in memory by every invocation's own index, and multiplications of 32 bits take four
// times as long as all else here.
uint levels_of(uint nibbles) {
    const uint codes = nibbles & 0x07070707u, upper = (nibbles >> 2) & 0x01010101u;
    // From 4 on a code's lower two bits count twice, and 7 is two more.
    const uint again = codes & (upper | upper << 1), sevens = again & again >> 1;
    const uint sizes = codes + again + (sevens << 1);
    // Zero has no negative: nothing carries into the next byte.
    const uint minus = ((codes + 0x07070707u) & nibbles & 0x08080808u) >> 3;
    return (sizes ^ ((minus << 8) - minus)) + minus;
}
