// Rounds to nearest, ties to even, whatever the driver's own conversion does: as src/base/half.h.
uint to_half_bits(float value) {
    const uint bits = floatBitsToUint(value), sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7FFFFFFFu;
    if (magnitude > 0x7F800000u) return sign | 0x7E00u;
    if (magnitude >= 0x477FF000u) return sign | 0x7C00u;
    if (magnitude < 0x38800000u) {
        const float aligned = uintBitsToFloat(magnitude) + 0.5;
        return sign | (floatBitsToUint(aligned) - 0x3F000000u);
    }
    return sign | ((magnitude - 0x38000000u + 0xFFFu + ((magnitude >> 13) & 1u)) >> 13);
}
