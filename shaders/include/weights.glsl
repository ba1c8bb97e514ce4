// A weight's bytes, as words of several sizes, and decoding in terms of a format's snippet. A weight of a
// quantized format lies in units of 32 elements whose fields stand in planes, the widest field first, so that
// every load is aligned: see backends/shared/layout.cpp. `m` says which of MATRICES buffers.
#ifndef MATRICES
#define MATRICES 1
#endif
layout(set = 0, binding = 0, std430) readonly buffer Words128 { uvec4 d[]; } w128[MATRICES];
layout(set = 0, binding = 0, std430) readonly buffer Words64 { uvec2 d[]; } w64[MATRICES];
layout(set = 0, binding = 0, std430) readonly buffer Words32 { uint d[]; } w32[MATRICES];
layout(set = 0, binding = 0, std430) readonly buffer Words16 { uint16_t d[]; } w16[MATRICES];
layout(set = 0, binding = 0, std430) readonly buffer Words8 { uint8_t d[]; } w8[MATRICES];

uint weight_units;  // in the buffer: where planes begin follows from it

float weight_half(uint m, uint index) {
    return unpackHalf2x16(uint(w16[m].d[index])).x;
}

#include "format.glsl"
#ifndef FORMAT_BOOK
void share_book() {}
#endif

#ifdef FORMAT_FLOAT
// Elements 4i .. 4i + 3 of the buffer.
vec4 weight_elements4(uint m, uint i) { return format_elements4(m, i); }
float weight_element(uint m, uint i) { return format_element(m, i); }
#else
// Codes are bytes: word k of `words` holds elements 4k .. 4k + 3 of the unit. Element i of the unit is
// scale * (code - FORMAT_BIAS) + offset with the scale and offset of its half.
vec4 code_values(uint word) {
#ifdef FORMAT_SIGNED
    return vec4(signed_byte(word, 0), signed_byte(word, 1), signed_byte(word, 2), signed_byte(word, 3));
#else
    return vec4(ivec4(byte_of(word, 0), byte_of(word, 1), byte_of(word, 2), byte_of(word, 3)) - FORMAT_BIAS);
#endif
}
// As the host decodes it, bit for bit: no contraction.
vec4 decode_exactly(uint word, float scale, float offset) {
    precise vec4 scaled = scale * code_values(word);
    precise vec4 sum = scaled + offset;
#ifdef FORMAT_OFFSET
    return sum;
#else
    return scaled;
#endif
}
vec4 decode4(uint word, float scale, float offset) {
#ifdef FORMAT_OFFSET
    return scale * code_values(word) + offset;
#else
    return scale * code_values(word);
#endif
}
#endif
