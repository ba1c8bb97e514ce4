// Planes: nibbles (16 bytes per unit), scale (2).
#define FORMAT_SIGNED
#define FORMAT_BIAS 0
#include "iq4_levels.glsl"
void unit_codes(uint m, uint unit, out uint words[8]) {
    const uvec4 q = w128[m].d[unit];
    [[unroll]] for (uint k = 0; k < 4; ++k) {
        const uvec2 both = both_levels(q[k]);
        words[k] = both.x;
        words[k + 4] = both.y;
    }
}
uvec2 unit_words(uint m, uint unit, uint k) {
    return both_levels(w32[m].d[unit * 4 + k]);
}
vec4 unit_scales(uint m, uint unit) {
    const float d = weight_half(m, weight_units * 8 + unit);
    return vec4(d, 0.0, d, 0.0);
}
// The same in two steps: see half_units.glsl.
#define FORMAT_RAW 5
void unit_raw(uint m, uint unit, out uint raw[5]) {
    const uvec4 q = w128[m].d[unit];
    [[unroll]] for (uint k = 0; k < 4; ++k) raw[k] = q[k];
    raw[4] = uint(w16[m].d[weight_units * 8 + unit]);
}
void raw_codes(uint raw[5], out uint words[8]) {
    [[unroll]] for (uint k = 0; k < 4; ++k) {
        const uvec2 both = both_levels(raw[k]);
        words[k] = both.x;
        words[k + 4] = both.y;
    }
}
vec4 raw_scales(uint unit, uint raw[5]) {
    const float d = unpackHalf2x16(raw[4]).x;
    return vec4(d, 0.0, d, 0.0);
}
