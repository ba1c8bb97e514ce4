// Planes: nibbles (16 bytes per unit), fifth bits (4), scale and minimum (4).
#define FORMAT_BIAS 0
#define FORMAT_OFFSET
// Bit v of byte j of `high` belongs to element 4v + j.
uint fifth_bits(uint high, uint v) { return ((high >> v) & 0x01010101u) << 4; }
void unit_codes(uint m, uint unit, out uint words[8]) {
    const uvec4 q = w128[m].d[unit];
    const uint high = w32[m].d[weight_units * 4 + unit];
    [[unroll]] for (uint k = 0; k < 4; ++k) {
        words[k] = (q[k] & 0x0F0F0F0Fu) | fifth_bits(high, k);
        words[k + 4] = ((q[k] >> 4) & 0x0F0F0F0Fu) | fifth_bits(high, k + 4);
    }
}
uvec2 unit_words(uint m, uint unit, uint k) {
    const uint q = w32[m].d[unit * 4 + k], high = w32[m].d[weight_units * 4 + unit];
    return uvec2((q & 0x0F0F0F0Fu) | fifth_bits(high, k), ((q >> 4) & 0x0F0F0F0Fu) | fifth_bits(high, k + 4));
}
vec4 unit_scales(uint m, uint unit) {
    const vec2 d = unpackHalf2x16(w32[m].d[weight_units * 5 + unit]);
    return vec4(d.x, d.y, d.x, d.y);
}
// The same in two steps: see half_units.glsl.
#define FORMAT_RAW 6
void unit_raw(uint m, uint unit, out uint raw[6]) {
    const uvec4 q = w128[m].d[unit];
    [[unroll]] for (uint k = 0; k < 4; ++k) raw[k] = q[k];
    raw[4] = w32[m].d[weight_units * 4 + unit];
    raw[5] = w32[m].d[weight_units * 5 + unit];
}
void raw_codes(uint raw[6], out uint words[8]) {
    [[unroll]] for (uint k = 0; k < 4; ++k) {
        words[k] = (raw[k] & 0x0F0F0F0Fu) | fifth_bits(raw[4], k);
        words[k + 4] = ((raw[k] >> 4) & 0x0F0F0F0Fu) | fifth_bits(raw[4], k + 4);
    }
}
vec4 raw_scales(uint unit, uint raw[6]) {
    const vec2 d = unpackHalf2x16(raw[5]);
    return vec4(d.x, d.y, d.x, d.y);
}
