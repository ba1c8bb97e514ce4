#define FORMAT_FLOAT
#define FORMAT_16_BITS
#define FORMAT_BFLOAT
vec4 format_elements4(uint m, uint i) {
    const uvec2 w = w64[m].d[i];
    return uintBitsToFloat(uvec4(w.x << 16, w.x & 0xFFFF0000u, w.y << 16, w.y & 0xFFFF0000u));
}
float format_element(uint m, uint i) { return uintBitsToFloat(uint(w16[m].d[i]) << 16); }
uint format_halves(uint word) { return packHalf2x16(uintBitsToFloat(uvec2(word << 16, word & 0xFFFF0000u))); }
