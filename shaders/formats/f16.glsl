#define FORMAT_FLOAT
#define FORMAT_16_BITS
vec4 format_elements4(uint m, uint i) {
    const uvec2 w = w64[m].d[i];
    return vec4(unpackHalf2x16(w.x), unpackHalf2x16(w.y));
}
float format_element(uint m, uint i) { return weight_half(m, i); }
uint format_halves(uint word) { return word; }  // of two elements, as halfs
