// Planes: lower bits of entries (4 bytes per unit), their top bits and directions (2), per 256 elements the scales (8),
// with a nibble of their own scale in the top of each two bytes. Codes as iq1_s.
#define FORMAT_BIAS 9
#define FORMAT_HALVES
#define FORMAT_BLOCK_BYTES 56
#define FORMAT_RAW 4
#include "code_books.glsl"
void unit_raw(uint m, uint unit, out uint raw[4]) {
    const uvec2 scales = w64[m].d[weight_units / 4 * 3 + (unit >> 3)];
    raw[0] = w32[m].d[unit];
    raw[1] = uint(w16[m].d[weight_units * 2 + unit]);
    raw[2] = scales.x;
    raw[3] = scales.y;
}
uint raw_word(uint raw[4], uint k) {
    const uint l = k >> 1, nibble = raw[1] >> 4u * l;
    return ternary_codes(byte_of(raw[0], l) | (nibble & 7u) << 8, k, nibble >> 3 & 1u);
}
vec4 raw_scales(uint unit, uint raw[4]) {
    const uint low = raw[2], high = raw[3];
    const uint d = (low >> 12 & 15u) | (low >> 24 & 0xF0u) | (high >> 4 & 0xF00u) | (high >> 16 & 0xF000u);
    const uint both = ((unit & 4u) == 0u ? low : high) >> ((unit & 2u) * 8u + (unit & 1u) * 6u);
    precise vec2 s = unpackHalf2x16(d).x * (0.25 * vec2(both & 7u, both >> 3 & 7u) + 0.125);
    return vec4(s.x, 0.0, s.y, 0.0);
}
#include "raw_units.glsl"
