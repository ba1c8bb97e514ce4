// Planes: lower bits of entries (4 bytes per unit), their top bits, scale and direction (2), per 256 elements their scale
// (2). Codes are eight times -1, 0 or 1, and one more or less, under an eighth of the scale.
#define FORMAT_BIAS 9
#define FORMAT_BLOCK_BYTES 50
#define FORMAT_RAW 3
#include "code_books.glsl"
void unit_raw(uint m, uint unit, out uint raw[3]) {
    raw[0] = w32[m].d[unit];
    raw[1] = uint(w16[m].d[weight_units * 2 + unit]);
    raw[2] = uint(w16[m].d[weight_units * 3 + (unit >> 3)]);
}
uint raw_word(uint raw[3], uint k) {
    const uint l = k >> 1, entry = byte_of(raw[0], l) | (raw[1] >> 3u * l & 7u) << 8;
    return ternary_codes(entry, k, raw[1] >> 15);
}
vec4 raw_scales(uint unit, uint raw[3]) {
    precise float s = unpackHalf2x16(raw[2]).x * (0.25 * float(raw[1] >> 12 & 7u) + 0.125);
    return vec4(s, 0.0, s, 0.0);
}
#include "raw_units.glsl"
