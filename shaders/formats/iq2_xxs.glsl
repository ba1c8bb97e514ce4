// Planes: entries and signs with the scale before them (8 bytes per unit), per 256 elements their scale (2).
#define FORMAT_SIGNED
#define FORMAT_BIAS 0
#define FORMAT_BLOCK_BYTES 66
#define FORMAT_RAW 3
#define FORMAT_BOOK 256
#define BOOK_OF_EIGHTS
#include "code_books.glsl"
void unit_raw(uint m, uint unit, out uint raw[3]) {
    const uvec2 both = w64[m].d[unit];
    raw[0] = both.x;
    raw[1] = both.y;
    raw[2] = uint(w16[m].d[weight_units * 4 + (unit >> 3)]);
}
uint raw_word(uint raw[3], uint k) {
    return word_of_eight(levels_of(byte_of(raw[0], k >> 1)), even_signs(raw[1]), k);
}
vec4 raw_scales(uint unit, uint raw[3]) {
    precise float s = unpackHalf2x16(raw[2]).x * (0.25 * float(raw[1] & 15u) + 0.125);
    return vec4(s, 0.0, s, 0.0);
}
#include "raw_units.glsl"
