// Planes: nibbles (16 bytes per unit), per 256 elements scale and packed scales (8).
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
    const uvec2 header = w64[m].d[weight_units * 2 + (unit >> 3)];
    const uint j = unit & 7u;
    const uint low = (header.y >> (j * 4u)) & 15u, high = (header.x >> (16u + j * 2u)) & 3u;
    precise float s = unpackHalf2x16(header.x).x * float(int(low | high << 4) - 32);
    return vec4(s, 0.0, s, 0.0);
}
// The same in two steps: see half_units.glsl.
#define FORMAT_RAW 6
void unit_raw(uint m, uint unit, out uint raw[6]) {
    const uvec4 q = w128[m].d[unit];
    [[unroll]] for (uint k = 0; k < 4; ++k) raw[k] = q[k];
    const uvec2 header = w64[m].d[weight_units * 2 + (unit >> 3)];
    raw[4] = header.x;
    raw[5] = header.y;
}
void raw_codes(uint raw[6], out uint words[8]) {
    [[unroll]] for (uint k = 0; k < 4; ++k) {
        const uvec2 both = both_levels(raw[k]);
        words[k] = both.x;
        words[k + 4] = both.y;
    }
}
vec4 raw_scales(uint unit, uint raw[6]) {
    const uint j = unit & 7u, low = (raw[5] >> (j * 4u)) & 15u, high = (raw[4] >> (16u + j * 2u)) & 3u;
    precise float s = unpackHalf2x16(raw[4]).x * float(int(low | high << 4) - 32);
    return vec4(s, 0.0, s, 0.0);
}
