// Planes: 32 codes (32 bytes per unit), scale (2).
#define FORMAT_SIGNED
#define FORMAT_BIAS 0
void unit_codes(uint m, uint unit, out uint words[8]) {
    const uvec4 a = w128[m].d[unit * 2], b = w128[m].d[unit * 2 + 1];
    [[unroll]] for (uint k = 0; k < 4; ++k) {
        words[k] = a[k];
        words[k + 4] = b[k];
    }
}
uvec2 unit_words(uint m, uint unit, uint k) {
    return uvec2(w32[m].d[unit * 8 + k], w32[m].d[unit * 8 + k + 4]);
}
vec4 unit_scales(uint m, uint unit) {
    const float d = weight_half(m, weight_units * 16 + unit);
    return vec4(d, 0.0, d, 0.0);
}
// The same in two steps: see half_units.glsl.
#define FORMAT_RAW 9
void unit_raw(uint m, uint unit, out uint raw[9]) {
    const uvec4 a = w128[m].d[unit * 2], b = w128[m].d[unit * 2 + 1];
    [[unroll]] for (uint k = 0; k < 4; ++k) {
        raw[k] = a[k];
        raw[k + 4] = b[k];
    }
    raw[8] = uint(w16[m].d[weight_units * 16 + unit]);
}
void raw_codes(uint raw[9], out uint words[8]) {
    [[unroll]] for (uint k = 0; k < 8; ++k) words[k] = raw[k];
}
vec4 raw_scales(uint unit, uint raw[9]) { return vec4(unpackHalf2x16(raw[8]).x, 0.0, unpackHalf2x16(raw[8]).x, 0.0); }
