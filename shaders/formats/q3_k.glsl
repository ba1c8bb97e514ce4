// Planes: low pairs of bits (8 bytes per unit), third bits (4), per 256 elements the packed scales (12) and
// their scale (2). Bits are grouped as in q2_k and q5_0; a clear third bit means minus 4.
#define FORMAT_BIAS 4
#define FORMAT_HALVES
uint third_bits(uint high, uint v) { return ((high >> v) & 0x01010101u) << 2; }
void unit_codes(uint m, uint unit, out uint words[8]) {
    const uvec2 q = w64[m].d[unit];
    const uint high = w32[m].d[weight_units * 2 + unit];
    [[unroll]] for (uint k = 0; k < 4; ++k) {
        words[k] = ((q.x >> (2u * k)) & 0x03030303u) | third_bits(high, k);
        words[k + 4] = ((q.y >> (2u * k)) & 0x03030303u) | third_bits(high, k + 4);
    }
}
uvec2 unit_words(uint m, uint unit, uint k) {
    const uint high = w32[m].d[weight_units * 2 + unit];
    return ((w64[m].d[unit] >> (2u * k)) & 0x03030303u) | uvec2(third_bits(high, k), third_bits(high, k + 4));
}
// Scale j of 16: low four bits in the nibbles of bytes 0..7, high two in the bit pairs of bytes 8..11.
int sub_scale(uvec3 packed, uint j) {
    const uint i = j & 7u;
    const uint low = (byte_of(i < 4u ? packed.x : packed.y, i & 3u) >> (j >> 3) * 4u) & 15u;
    const uint high = (byte_of(packed.z, j & 3u) >> (j >> 2) * 2u) & 3u;
    return int(low | high << 4) - 32;
}
vec4 unit_scales(uint m, uint unit) {
    const uint block = unit >> 3, at = weight_units * 3 + block * 3, j = (unit & 7u) * 2u;
    const uvec3 packed = uvec3(w32[m].d[at], w32[m].d[at + 1], w32[m].d[at + 2]);
    // 12 bytes per unit and 12 per 8 units before the scales' scale.
    const float d = weight_half(m, weight_units * 6 + weight_units / 8 * 6 + block);
    precise vec2 s = d * vec2(sub_scale(packed, j), sub_scale(packed, j + 1u));
    return vec4(s.x, 0.0, s.y, 0.0);
}
// The same in two steps: see half_units.glsl.
#define FORMAT_RAW 7
void unit_raw(uint m, uint unit, out uint raw[7]) {
    const uvec2 q = w64[m].d[unit];
    raw[0] = q.x;
    raw[1] = q.y;
    raw[2] = w32[m].d[weight_units * 2 + unit];
    const uint block = unit >> 3, at = weight_units * 3 + block * 3;
    [[unroll]] for (uint k = 0; k < 3; ++k) raw[3 + k] = w32[m].d[at + k];
    raw[6] = uint(w16[m].d[weight_units * 6 + weight_units / 8 * 6 + block]);
}
void raw_codes(uint raw[7], out uint words[8]) {
    [[unroll]] for (uint k = 0; k < 4; ++k) {
        words[k] = ((raw[0] >> (2u * k)) & 0x03030303u) | third_bits(raw[2], k);
        words[k + 4] = ((raw[1] >> (2u * k)) & 0x03030303u) | third_bits(raw[2], k + 4);
    }
}
vec4 raw_scales(uint unit, uint raw[7]) {
    const uint j = (unit & 7u) * 2u;
    const uvec3 packed = uvec3(raw[3], raw[4], raw[5]);
    precise vec2 s = unpackHalf2x16(raw[6]).x * vec2(sub_scale(packed, j), sub_scale(packed, j + 1u));
    return vec4(s.x, 0.0, s.y, 0.0);
}
