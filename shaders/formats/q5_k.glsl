// Planes: nibbles (16 bytes per unit), per 256 elements scale, minimum and the packed scales (16), fifth bits
// (4 per unit).
#define FORMAT_BIAS 0
#define FORMAT_OFFSET
// Bit v of byte j of `high` belongs to element 4v + j.
uint fifth_bits(uint high, uint v) { return ((high >> v) & 0x01010101u) << 4; }
void unit_codes(uint m, uint unit, out uint words[8]) {
    const uvec4 q = w128[m].d[unit];
    const uint high = w32[m].d[weight_units * 4 + weight_units / 2 + unit];
    [[unroll]] for (uint k = 0; k < 4; ++k) {
        words[k] = (q[k] & 0x0F0F0F0Fu) | fifth_bits(high, k);
        words[k + 4] = ((q[k] >> 4) & 0x0F0F0F0Fu) | fifth_bits(high, k + 4);
    }
}
uvec2 unit_words(uint m, uint unit, uint k) {
    const uint q = w32[m].d[unit * 4 + k], high = w32[m].d[weight_units * 4 + weight_units / 2 + unit];
    return uvec2((q & 0x0F0F0F0Fu) | fifth_bits(high, k), ((q >> 4) & 0x0F0F0F0Fu) | fifth_bits(high, k + 4));
}
// The six-bit scale and minimum of sub-block j of 8, as pack_k_header() in layout.cpp leaves them.
vec2 sub_scales(uvec4 header, uint j) {
    const uint both = (j < 4u ? header.y : header.z) >> (j & 3u) * 8u;
    const uint n = (header.w >> j * 4u & 15u) | (both >> 2 & 0x30u);
    precise vec2 product = unpackHalf2x16(header.x) * vec2(both & 63u, n);
    return product;
}
vec4 unit_scales(uint m, uint unit) {
    const vec2 d = sub_scales(w128[m].d[weight_units + (unit >> 3)], unit & 7u);
    return vec4(d.x, -d.y, d.x, -d.y);
}
// The same in two steps: see half_units.glsl.
#define FORMAT_RAW 9
void unit_raw(uint m, uint unit, out uint raw[9]) {
    const uvec4 q = w128[m].d[unit], header = w128[m].d[weight_units + (unit >> 3)];
    [[unroll]] for (uint k = 0; k < 4; ++k) {
        raw[k] = q[k];
        raw[k + 5] = header[k];
    }
    raw[4] = w32[m].d[weight_units * 4 + weight_units / 2 + unit];
}
void raw_codes(uint raw[9], out uint words[8]) {
    [[unroll]] for (uint k = 0; k < 4; ++k) {
        words[k] = (raw[k] & 0x0F0F0F0Fu) | fifth_bits(raw[4], k);
        words[k + 4] = ((raw[k] >> 4) & 0x0F0F0F0Fu) | fifth_bits(raw[4], k + 4);
    }
}
vec4 raw_scales(uint unit, uint raw[9]) {
    const vec2 d = sub_scales(uvec4(raw[5], raw[6], raw[7], raw[8]), unit & 7u);
    return vec4(d.x, -d.y, d.x, -d.y);
}
