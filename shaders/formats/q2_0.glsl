// Planes: codes (8 bytes per unit; bits as in q2_k), per 64 elements the scale (2).
#define FORMAT_BIAS 1
#define FORMAT_RAW 3
void unit_raw(uint m, uint unit, out uint raw[3]) {
    const uvec2 q = w64[m].d[unit];
    raw[0] = q.x;
    raw[1] = q.y;
    raw[2] = uint(w16[m].d[weight_units * 4 + (unit >> 1)]);
}
uint raw_word(uint raw[3], uint k) {
    return (k < 4u ? raw[0] : raw[1]) >> (k & 3u) * 2u & 0x03030303u;
}
vec4 raw_scales(uint unit, uint raw[3]) {
    const float d = unpackHalf2x16(raw[2]).x;
    return vec4(d, 0.0, d, 0.0);
}
#include "raw_units.glsl"
