// Planes: nibbles (16 bytes per unit), per 256 elements scale and packed scales (8).
#define FORMAT_SIGNED
#define FORMAT_BIAS 0
#include "iq4_levels.glsl"
void unit_codes(uint m, uint unit, out uint words[8]) {
    const uvec4 q = w128[m].d[unit];
    [[unroll]] for (uint k = 0; k < 4; ++k) {
        words[k] = levels_of(q[k] & 0x0F0F0F0Fu);
        words[k + 4] = levels_of((q[k] >> 4) & 0x0F0F0F0Fu);
    }
}
uvec2 unit_words(uint m, uint unit, uint k) {
    const uint q = w32[m].d[unit * 4 + k];
    return uvec2(levels_of(q & 0x0F0F0F0Fu), levels_of((q >> 4) & 0x0F0F0F0Fu));
}
vec4 unit_scales(uint m, uint unit) {
    const uvec2 header = w64[m].d[weight_units * 2 + (unit >> 3)];
    const uint j = unit & 7u;
    const uint low = (header.y >> (j * 4u)) & 15u, high = (header.x >> (16u + j * 2u)) & 3u;
    precise float s = unpackHalf2x16(header.x).x * float(int(low | high << 4) - 32);
    return vec4(s, 0.0, s, 0.0);
}
