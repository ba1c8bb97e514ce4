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
