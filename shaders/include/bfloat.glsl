// Rounds to nearest, ties to even; NaN stays NaN: as src/base/half.h.
uint to_bfloat_bits(float value) {
    const uint bits = floatBitsToUint(value);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return bits >> 16 | 0x40u;
    return (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
}
