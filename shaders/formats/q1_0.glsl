// Planes: signs (4 bytes per unit; bit v of byte j: element 4v + j), per 128 elements the scale (2).
#define FORMAT_BIAS 1
#define FORMAT_RAW 2
void unit_raw(uint m, uint unit, out uint raw[2]) {
    raw[0] = w32[m].d[unit];
    raw[1] = uint(w16[m].d[weight_units * 2 + (unit >> 2)]);
}
// Twice a sign's bit.
uint raw_word(uint raw[2], uint k) {
    return (raw[0] >> k & 0x01010101u) << 1;
}
vec4 raw_scales(uint unit, uint raw[2]) {
    const float d = unpackHalf2x16(raw[1]).x;
    return vec4(d, 0.0, d, 0.0);
}
#include "raw_units.glsl"
