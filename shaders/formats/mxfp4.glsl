// Planes: nibbles (16 bytes per unit), exponent (1). Codes are twice the E2M1 number under half the scale.
#include "e2m1.glsl"
void unit_codes(uint m, uint unit, out uint words[8]) {
    const uvec4 q = w128[m].d[unit];
    [[unroll]] for (uint k = 0; k < 4; ++k) {
        words[k] = codes_of(q[k], 0u);
        words[k + 4] = codes_of(q[k], 4u);
    }
}
uvec2 unit_words(uint m, uint unit, uint k) {
    const uint q = w32[m].d[unit * 4 + k];
    return uvec2(codes_of(q, 0u), codes_of(q, 4u));
}
vec4 unit_scales(uint m, uint unit) {
    const uint e = uint(w8[m].d[weight_units * 16 + unit]);
    const float d = uintBitsToFloat(e < 2u ? 0x00200000u << e : (e - 1u) << 23);
    return vec4(d, 0.0, d, 0.0);
}
// The same in two steps: see half_units.glsl.
#define FORMAT_RAW 5
void unit_raw(uint m, uint unit, out uint raw[5]) {
    const uvec4 q = w128[m].d[unit];
    [[unroll]] for (uint k = 0; k < 4; ++k) raw[k] = q[k];
    raw[4] = uint(w8[m].d[weight_units * 16 + unit]);
}
void raw_codes(uint raw[5], out uint words[8]) {
    [[unroll]] for (uint k = 0; k < 4; ++k) {
        words[k] = codes_of(raw[k], 0u);
        words[k + 4] = codes_of(raw[k], 4u);
    }
}
vec4 raw_scales(uint unit, uint raw[5]) {
    const float d = uintBitsToFloat(raw[4] < 2u ? 0x00200000u << raw[4] : (raw[4] - 1u) << 23);
    return vec4(d, 0.0, d, 0.0);
}
