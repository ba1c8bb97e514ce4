// Planes: lower bits of entries (8 bytes per unit), signs (4), per 256 elements scale, packed scales and top bits of
// entries (14). Levels are the odd numbers to 15.
#define FORMAT_SIGNED
#define FORMAT_BIAS 0
#define FORMAT_BLOCK_BYTES 110
#define FORMAT_RAW 6
#include "code_books.glsl"
void unit_raw(uint m, uint unit, out uint raw[6]) {
    const uvec2 entries = w64[m].d[unit];
    const uint header = weight_units * 6 + (unit >> 3) * 7;
    raw[0] = entries.x;
    raw[1] = entries.y;
    raw[2] = w32[m].d[weight_units * 2 + unit];
    raw[3] = uint(w8[m].d[header * 2 + 6 + (unit & 7u)]);
    raw[4] = uint(w16[m].d[header]);
    raw[5] = uint(w16[m].d[header + 1 + (unit >> 2 & 1u)]);
}
uint raw_word(uint raw[6], uint k) {
    const uint top = raw[3] >> k & 1u;
    return signed_levels(book_word(byte_of(k < 4u ? raw[0] : raw[1], k & 3u) | top << 8), raw[2], k);
}
vec4 raw_scales(uint unit, uint raw[6]) {
    precise float s = unpackHalf2x16(raw[4]).x * float(1u + 2u * (raw[5] >> (unit & 3u) * 4u & 15u));
    return vec4(s, 0.0, s, 0.0);
}
#include "raw_units.glsl"
