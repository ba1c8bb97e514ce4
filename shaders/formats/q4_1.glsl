// Planes: nibbles (16 bytes per unit), scale and minimum (4).
#define FORMAT_BIAS 0
#define FORMAT_OFFSET
void unit_codes(uint m, uint unit, out uint words[8]) {
    const uvec4 q = w128[m].d[unit];
    [[unroll]] for (uint k = 0; k < 4; ++k) {
        words[k] = q[k] & 0x0F0F0F0Fu;
        words[k + 4] = (q[k] >> 4) & 0x0F0F0F0Fu;
    }
}
uvec2 unit_words(uint m, uint unit, uint k) {
    const uint q = w32[m].d[unit * 4 + k];
    return uvec2(q & 0x0F0F0F0Fu, (q >> 4) & 0x0F0F0F0Fu);
}
vec4 unit_scales(uint m, uint unit) {
    const vec2 d = unpackHalf2x16(w32[m].d[weight_units * 4 + unit]);
    return vec4(d.x, d.y, d.x, d.y);
}
// The same in two steps: see half_units.glsl.
#define FORMAT_RAW 5
void unit_raw(uint m, uint unit, out uint raw[5]) {
    const uvec4 q = w128[m].d[unit];
    [[unroll]] for (uint k = 0; k < 4; ++k) raw[k] = q[k];
    raw[4] = w32[m].d[weight_units * 4 + unit];
}
void raw_codes(uint raw[5], out uint words[8]) {
    [[unroll]] for (uint k = 0; k < 4; ++k) {
        words[k] = raw[k] & 0x0F0F0F0Fu;
        words[k + 4] = (raw[k] >> 4) & 0x0F0F0F0Fu;
    }
}
vec4 raw_scales(uint unit, uint raw[5]) {
    const vec2 d = unpackHalf2x16(raw[4]);
    return vec4(d.x, d.y, d.x, d.y);
}
