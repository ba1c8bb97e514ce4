// Planes: nibbles (16 bytes per unit), then per 256 elements scale, minimum and the packed scales (16).
#define FORMAT_BIAS 0
#define FORMAT_OFFSET
void nibble_codes(uvec4 q, out uint words[8]) {
    [[unroll]] for (uint k = 0; k < 4; ++k) {
        words[k] = q[k] & 0x0F0F0F0Fu;
        words[k + 4] = (q[k] >> 4) & 0x0F0F0F0Fu;
    }
}
void unit_codes(uint m, uint unit, out uint words[8]) { nibble_codes(w128[m].d[unit], words); }
uvec2 unit_words(uint m, uint unit, uint k) {
    const uint q = w32[m].d[unit * 4 + k];
    return uvec2(q & 0x0F0F0F0Fu, (q >> 4) & 0x0F0F0F0Fu);
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
#define FORMAT_RAW 8
void unit_raw(uint m, uint unit, out uint raw[8]) {
    const uvec4 q = w128[m].d[unit], header = w128[m].d[weight_units + (unit >> 3)];
    [[unroll]] for (uint k = 0; k < 4; ++k) {
        raw[k] = q[k];
        raw[k + 4] = header[k];
    }
}
void raw_codes(uint raw[8], out uint words[8]) { nibble_codes(uvec4(raw[0], raw[1], raw[2], raw[3]), words); }
vec4 raw_scales(uint unit, uint raw[8]) {
    const vec2 d = sub_scales(uvec4(raw[4], raw[5], raw[6], raw[7]), unit & 7u);
    return vec4(d.x, -d.y, d.x, -d.y);
}
