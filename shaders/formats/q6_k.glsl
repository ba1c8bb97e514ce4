// Planes: low nibbles (16 bytes per unit), upper pairs of bits (8), per 256 elements the scales (16) and their
// scale (2). Bits 2v, 2v + 1 of byte j of upper word w belong to element 16w + 4v + j.
#define FORMAT_BIAS 32
#define FORMAT_HALVES
uint upper_bits(uint word, uint v) { return ((word >> (2u * v)) & 0x03030303u) << 4; }
void joined_codes(uvec4 q, uvec2 high, out uint words[8]) {
    [[unroll]] for (uint k = 0; k < 4; ++k) {
        words[k] = (q[k] & 0x0F0F0F0Fu) | upper_bits(high.x, k);
        words[k + 4] = ((q[k] >> 4) & 0x0F0F0F0Fu) | upper_bits(high.y, k);
    }
}
void unit_codes(uint m, uint unit, out uint words[8]) {
    joined_codes(w128[m].d[unit], w64[m].d[weight_units * 2 + unit], words);
}
uvec2 unit_words(uint m, uint unit, uint k) {
    const uint q = w32[m].d[unit * 4 + k];
    const uvec2 high = w64[m].d[weight_units * 2 + unit];
    return uvec2((q & 0x0F0F0F0Fu) | upper_bits(high.x, k), ((q >> 4) & 0x0F0F0F0Fu) | upper_bits(high.y, k));
}
vec4 unit_scales(uint m, uint unit) {
    // 24 bytes per unit, then 2 per unit of scales, then 2 per 8 units.
    const uint pair = uint(w16[m].d[weight_units * 12 + unit]);
    const float d = weight_half(m, weight_units * 13 + (unit >> 3));
    precise vec2 s = d * vec2(signed_byte(pair, 0), signed_byte(pair, 1));
    return vec4(s.x, 0.0, s.y, 0.0);
}
// The same in two steps: see half_units.glsl.
#define FORMAT_RAW 8
void unit_raw(uint m, uint unit, out uint raw[8]) {
    const uvec4 q = w128[m].d[unit];
    const uvec2 high = w64[m].d[weight_units * 2 + unit];
    [[unroll]] for (uint k = 0; k < 4; ++k) raw[k] = q[k];
    raw[4] = high.x;
    raw[5] = high.y;
    raw[6] = uint(w16[m].d[weight_units * 12 + unit]);
    raw[7] = uint(w16[m].d[weight_units * 13 + (unit >> 3)]);
}
void raw_codes(uint raw[8], out uint words[8]) {
    joined_codes(uvec4(raw[0], raw[1], raw[2], raw[3]), uvec2(raw[4], raw[5]), words);
}
vec4 raw_scales(uint unit, uint raw[8]) {
    const vec2 s = unpackHalf2x16(raw[7]).x * vec2(signed_byte(raw[6], 0), signed_byte(raw[6], 1));
    return vec4(s.x, 0.0, s.y, 0.0);
}
