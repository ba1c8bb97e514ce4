// Planes: codes (8 bytes per unit), per 256 elements the packed scales and minima (16), scale and minimum (4).
// Bits 2v, 2v + 1 of byte j of code word w belong to element 16w + 4v + j.
#define FORMAT_BIAS 0
#define FORMAT_OFFSET
#define FORMAT_HALVES
void unit_codes(uint m, uint unit, out uint words[8]) {
    const uvec2 q = w64[m].d[unit];
    [[unroll]] for (uint k = 0; k < 4; ++k) {
        words[k] = (q.x >> (2u * k)) & 0x03030303u;
        words[k + 4] = (q.y >> (2u * k)) & 0x03030303u;
    }
}
uvec2 unit_words(uint m, uint unit, uint k) {
    return (w64[m].d[unit] >> (2u * k)) & 0x03030303u;
}
vec4 unit_scales(uint m, uint unit) {
    const uint pair = uint(w16[m].d[weight_units * 4 + unit]);
    const vec2 d = unpackHalf2x16(w32[m].d[weight_units * 2 + weight_units / 2 + (unit >> 3)]);
    precise vec4 s = d.xyxy * vec4(pair & 15u, (pair >> 4) & 15u, (pair >> 8) & 15u, pair >> 12);
    return s * vec4(1.0, -1.0, 1.0, -1.0);
}
// The same in two steps: see half_units.glsl.
#define FORMAT_RAW 4
void unit_raw(uint m, uint unit, out uint raw[4]) {
    const uvec2 q = w64[m].d[unit];
    raw[0] = q.x;
    raw[1] = q.y;
    raw[2] = uint(w16[m].d[weight_units * 4 + unit]);
    raw[3] = w32[m].d[weight_units * 2 + weight_units / 2 + (unit >> 3)];
}
void raw_codes(uint raw[4], out uint words[8]) {
    [[unroll]] for (uint k = 0; k < 4; ++k) {
        words[k] = (raw[0] >> (2u * k)) & 0x03030303u;
        words[k + 4] = (raw[1] >> (2u * k)) & 0x03030303u;
    }
}
vec4 raw_scales(uint unit, uint raw[4]) {
    const vec2 d = unpackHalf2x16(raw[3]);
    precise vec4 s = d.xyxy * vec4(raw[2] & 15u, (raw[2] >> 4) & 15u, (raw[2] >> 8) & 15u, raw[2] >> 12);
    return s * vec4(1.0, -1.0, 1.0, -1.0);
}
