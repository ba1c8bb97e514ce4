#define FORMAT_FLOAT
vec4 format_elements4(uint m, uint i) { return uintBitsToFloat(w128[m].d[i]); }
float format_element(uint m, uint i) { return uintBitsToFloat(w32[m].d[i]); }
