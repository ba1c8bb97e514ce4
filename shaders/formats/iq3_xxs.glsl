// Planes: entries (8 bytes per unit), signs with the scale before them (4), per 256 elements their scale (2). Levels reach
// from 4 to 62.
#define FORMAT_SIGNED
#define FORMAT_BIAS 0
#define FORMAT_BLOCK_BYTES 98
#define FORMAT_RAW 4
#define FORMAT_BOOK 256
#define BOOK_OF_FOURS
#include "code_books.glsl"
void unit_raw(uint m, uint unit, out uint raw[4]) {
    const uvec2 entries = w64[m].d[unit];
    raw[0] = entries.x;
    raw[1] = entries.y;
    raw[2] = w32[m].d[weight_units * 2 + unit];
    raw[3] = uint(w16[m].d[weight_units * 6 + (unit >> 3)]);
}
uint raw_word(uint raw[4], uint k) {
    return signed_levels(levels_of(byte_of(k < 4u ? raw[0] : raw[1], k & 3u)), even_signs(raw[2]), k);
}
vec4 raw_scales(uint unit, uint raw[4]) {
    precise float s = unpackHalf2x16(raw[3]).x * (0.5 * float(raw[2] & 15u) + 0.25);
    return vec4(s, 0.0, s, 0.0);
}
#include "raw_units.glsl"
