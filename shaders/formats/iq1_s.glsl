// Planes: entries of eleven bits (4 bytes per unit), the last bit of the third, the fourth, scale and direction (2), per
// 256 elements their scale (2). Codes are eight times -1, 0 or 1, and one more or less, under an eighth of the scale. In
// shared memory they are four times 0, 1 or 2, and the offset says the rest.
#ifdef SHARED_BOOK
#define FORMAT_BIAS 0
#define FORMAT_OFFSET
#else
#define FORMAT_BIAS 9
#endif
#define FORMAT_BLOCK_BYTES 50
#define FORMAT_RAW 3
#define FORMAT_BOOK 2048
#include "code_books.glsl"
void unit_raw(uint m, uint unit, out uint raw[3]) {
    raw[0] = w32[m].d[unit];
    raw[1] = uint(w16[m].d[weight_units * 2 + unit]);
    raw[2] = uint(w16[m].d[weight_units * 3 + (unit >> 3)]);
}
uint raw_word(uint raw[3], uint k) {
    const uint l = k >> 1;
    const uint entry = l < 2u ? raw[0] >> 11u * l & 2047u : l == 2u ? raw[0] >> 22 | (raw[1] & 1u) << 10 : raw[1] >> 1 & 2047u;
#ifdef SHARED_BOOK
    return ternary_codes(entry, k, 0u);
#else
    return ternary_codes(entry, k, raw[1] >> 15);
#endif
}
vec4 raw_scales(uint unit, uint raw[3]) {
    precise float s = unpackHalf2x16(raw[2]).x * (0.25 * float(raw[1] >> 12 & 7u) + 0.125);
#ifdef SHARED_BOOK
    const float offset = s * (raw[1] >> 15 == 0u ? -7.0 : -9.0);
    return vec4(s * 2.0, offset, s * 2.0, offset);
#else
    return vec4(s, 0.0, s, 0.0);
#endif
}
#include "raw_units.glsl"
