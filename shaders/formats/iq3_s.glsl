// Planes: two words with entries of nine bits (8 bytes per unit), signs (4), the last bits of each fourth entry (1), per 256
// elements scale and packed scales (6). Levels are the odd numbers to 15.
#define FORMAT_SIGNED
#define FORMAT_BIAS 0
#define FORMAT_BLOCK_BYTES 110
#define FORMAT_RAW 6
#define FORMAT_BOOK 512
#define BOOK_OF_FOURS
#include "code_books.glsl"
void unit_raw(uint m, uint unit, out uint raw[6]) {
    const uvec2 entries = w64[m].d[unit];
    const uint header = weight_units / 2 * 13 + (unit >> 3) * 3;
    raw[0] = entries.x;
    raw[1] = entries.y;
    raw[2] = w32[m].d[weight_units * 2 + unit];
    raw[3] = uint(w8[m].d[weight_units * 12 + unit]);
    raw[4] = uint(w16[m].d[header]);
    raw[5] = uint(w16[m].d[header + 1 + (unit >> 2 & 1u)]);
}
uint raw_word(uint raw[6], uint k) {
    const uint j = k & 3u, four = k < 4u ? raw[0] : raw[1];
    const uint entry = j < 3u ? four >> 9u * j & 511u : four >> 27 | (raw[3] >> (k & 4u) & 15u) << 5;
    return signed_levels(levels_of(entry), raw[2], k);
}
vec4 raw_scales(uint unit, uint raw[6]) {
    precise float s = unpackHalf2x16(raw[4]).x * float(1u + 2u * (raw[5] >> (unit & 3u) * 4u & 15u));
    return vec4(s, 0.0, s, 0.0);
}
#include "raw_units.glsl"
