// Planes: four fractions of 256 with five digits to the base 3 each (4 bytes per unit), four fractions of 32 with three
// digits, their lower 16 bits (2), the other four (half a byte), per 256 elements the scale (2). Digit n of fraction j
// belongs to element 4n + j, and of the latter to 20 + 4n + j.
#define FORMAT_BIAS 1
#define FORMAT_RAW 3
void unit_raw(uint m, uint unit, out uint raw[3]) {
    const uint nibble = uint(w8[m].d[weight_units * 6 + (unit >> 1)]) >> (unit & 1u) * 4u & 15u;
    raw[0] = w32[m].d[unit];
    raw[1] = uint(w16[m].d[weight_units * 2 + unit]) | nibble << 16;
    raw[2] = uint(w16[m].d[weight_units * 3 + weight_units / 4 + (unit >> 3)]);
}
uint raw_word(uint raw[3], uint k) {
    // Three of the latter as fractions of 256, and the fourth.
    const uint b = raw[1], few = (b << 3 & 0xF8u) | (b << 6 & 0xF800u) | (b << 9 & 0xF80000u) | (b << 12 & 0xF8000000u);
    const uint fractions = k < 5u ? raw[0] : few, n = k < 5u ? k : k - 5u;
    const uint power = n == 0u ? 1u : byte_of(0x511B0903u, n - 1u);  // of 3
    const uint even = (fractions & 0x00FF00FFu) * power & 0x00FF00FFu;
    const uint odd = (fractions >> 8 & 0x00FF00FFu) * power & 0x00FF00FFu;
    return (even * 3u >> 8 & 0x00030003u) | (odd * 3u & 0x03000300u);
}
vec4 raw_scales(uint unit, uint raw[3]) {
    const float d = unpackHalf2x16(raw[2]).x;
    return vec4(d, 0.0, d, 0.0);
}
#include "raw_units.glsl"
