// Planes: entries of ten bits, and signs (8 bytes per unit), the last bits of the fourth entry, and scales (2), per 256
// elements their scale (2).
#define FORMAT_SIGNED
#define FORMAT_BIAS 0
#define FORMAT_HALVES
#define FORMAT_BLOCK_BYTES 82
#define FORMAT_RAW 4
#define FORMAT_BOOK 1024
#define BOOK_OF_EIGHTS
#include "code_books.glsl"
void unit_raw(uint m, uint unit, out uint raw[4]) {
    const uvec2 both = w64[m].d[unit];
    raw[0] = both.x;
    raw[1] = both.y;
    raw[2] = uint(w16[m].d[weight_units * 4 + unit]);
    raw[3] = uint(w16[m].d[weight_units * 5 + (unit >> 3)]);
}
uint raw_word(uint raw[4], uint k) {
    const uint l = k >> 1, entry = l < 3u ? raw[0] >> 10u * l & 1023u : raw[0] >> 30 | (raw[2] & 255u) << 2;
    return word_of_eight(levels_of(entry), raw[1], k);
}
vec4 raw_scales(uint unit, uint raw[4]) {
    precise vec2 s = unpackHalf2x16(raw[3]).x * (0.25 * vec2(raw[2] >> 8 & 15u, raw[2] >> 12) + 0.125);
    return vec4(s.x, 0.0, s.y, 0.0);
}
#include "raw_units.glsl"
