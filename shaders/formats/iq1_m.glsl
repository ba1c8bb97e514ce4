// Planes: entries of eleven bits under a direction (4 bytes per unit), the last bits of the third, and the fourth (2), per
// 256 elements their scale and of each unit two scales of three bits (8). Codes as iq1_s, and half of them in shared memory.
#ifdef SHARED_BOOK
#define FORMAT_BIAS 0
#define FORMAT_OFFSET
#else
#define FORMAT_BIAS 9
#endif
#define FORMAT_HALVES
#define FORMAT_BLOCK_BYTES 56
#define FORMAT_RAW 4
#define FORMAT_BOOK 2048
#include "code_books.glsl"
void unit_raw(uint m, uint unit, out uint raw[4]) {
    const uvec2 scales = w64[m].d[weight_units / 4 * 3 + (unit >> 3)];
    raw[0] = w32[m].d[unit];
    raw[1] = uint(w16[m].d[weight_units * 2 + unit]);
    raw[2] = scales.x;
    raw[3] = scales.y;
}
uint raw_word(uint raw[4], uint k) {
    const uint l = k >> 1;
    const uint both = l < 2u ? raw[0] >> 12u * l & 4095u : l == 2u ? raw[0] >> 24 | (raw[1] & 15u) << 8 : raw[1] >> 4;
#ifdef SHARED_BOOK
    return ternary_codes(both & 2047u, k, (both >> 11) - 1u & 0x11111111u);
#else
    return ternary_codes(both & 2047u, k, both >> 11);
#endif
}
vec4 raw_scales(uint unit, uint raw[4]) {
    const uint low = raw[2], high = raw[3], at = (unit & 7u) * 6u;
    const uint both = (unit & 7u) < 3u ? low >> 16u + at | high << 16u - at : high >> at - 16u;
    precise vec2 s = unpackHalf2x16(low).x * (0.25 * vec2(both & 7u, both >> 3 & 7u) + 0.125);
#ifdef SHARED_BOOK
    return vec4(s.x * 2.0, s.x * -9.0, s.y * 2.0, s.y * -9.0);
#else
    return vec4(s.x, 0.0, s.y, 0.0);
#endif
}
#include "raw_units.glsl"
