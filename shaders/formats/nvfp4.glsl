// Planes: nibbles (16 bytes per unit), scales in E4M3 without a sign (2). Codes are twice the E2M1 number under half the scale.
#define FORMAT_HALVES
#define FORMAT_RAW 5
#include "e2m1.glsl"
void unit_raw(uint m, uint unit, out uint raw[5]) {
    const uvec4 q = w128[m].d[unit];
    [[unroll]] for (uint k = 0; k < 4; ++k) raw[k] = q[k];
    raw[4] = uint(w16[m].d[weight_units * 8 + unit]);
}
uint raw_word(uint raw[5], uint k) {
    const uint i = k & 3u, q = i < 2u ? (i == 0u ? raw[0] : raw[1]) : (i == 2u ? raw[2] : raw[3]);
    return codes_of(q, k & 4u);
}
// An E4M3 number's bits are those of a half that is 256 times smaller.
vec4 raw_scales(uint unit, uint raw[5]) {
    const vec2 s = unpackHalf2x16((raw[4] & 255u) << 7 | raw[4] >> 8 << 23) * 128.0;
    return vec4(s.x, 0.0, s.y, 0.0);
}
#include "raw_units.glsl"
