// Pieces of a weight as halfs for matrix units, in two steps, so that loads run ahead of the arithmetic: fetch_piece
// reads the bytes, piece_halves decodes them. A piece is a unit of 32 elements, or of plain numbers 8, which a subgroup reads
// side by side. Within every four elements the middle two have changed places, in activations too (prepare_halves.comp):
// so two bytes of a word of codes become two halfs by one mask. Where they are IN_ORDER, plain numbers go to matrix units as
// they are; with BFLOAT_MATRICES always, as bfloat16.
uint first_half(uint a, uint b) { return (a & 0xFFFFu) | b << 16; }
uint second_half(uint a, uint b) { return a >> 16 | (b & 0xFFFF0000u); }
// To that order, and back.
uvec4 swapped(uvec4 v) {
    return uvec4(first_half(v.x, v.y), second_half(v.x, v.y), first_half(v.z, v.w), second_half(v.z, v.w));
}

#ifdef FORMAT_FLOAT
const uint PIECE = 8;
const uint RAW = 4;  // words between the two steps
void fetch_piece(uint m, uint piece, out uint raw[RAW]) {
#ifdef FORMAT_16_BITS
    const uvec4 v = w128[m].d[piece];
#else
    const vec4 a = weight_elements4(m, piece * 2u), b = weight_elements4(m, piece * 2u + 1u);
    const uvec4 v = uvec4(packHalf2x16(a.xy), packHalf2x16(a.zw), packHalf2x16(b.xy), packHalf2x16(b.zw));
#endif
    [[unroll]] for (uint k = 0; k < 4; ++k) raw[k] = v[k];
}
void piece_halves(uint piece, uint raw[RAW], out uvec4 halves[PIECE / 8]) {
    uvec4 v = uvec4(raw[0], raw[1], raw[2], raw[3]);
#ifndef BFLOAT_MATRICES
#ifdef FORMAT_16_BITS
    v = uvec4(format_halves(v.x), format_halves(v.y), format_halves(v.z), format_halves(v.w));
#endif
    if (!IN_ORDER) v = swapped(v);
#endif
    halves[0] = v;
}
#else
const uint PIECE = 32;
#ifdef FORMAT_RAW
const uint RAW = FORMAT_RAW;
#else
const uint RAW = 12;
#endif
void fetch_piece(uint m, uint unit, out uint raw[RAW]) {
#ifdef FORMAT_RAW
    unit_raw(m, unit, raw);
#else
    uint words[8];
    unit_codes(m, unit, words);
    const uvec4 s = floatBitsToUint(unit_scales(m, unit));
    [[unroll]] for (uint k = 0; k < 8; ++k) raw[k] = words[k];
    [[unroll]] for (uint k = 0; k < 4; ++k) raw[8u + k] = s[k];
#endif
}
// The codes in bytes 0 and 2. A byte below the exponent of 1024 is that much above it, exactly.
f16vec2 code_pair(uint word) {
#ifdef FORMAT_SIGNED
    return unpackFloat2x16((word & 0x00FF00FFu) | 0x64006400u) - f16vec2(1152.0hf);
#else
    return unpackFloat2x16((word & 0x00FF00FFu) | 0x64006400u) - f16vec2(float16_t(1024 + FORMAT_BIAS));
#endif
}
uvec2 code_halves(uint word, f16vec2 scale, f16vec2 offset) {
#ifdef FORMAT_SIGNED
    word ^= 0x80808080u;
#endif
#ifdef FORMAT_OFFSET
    return uvec2(packFloat2x16(fma(code_pair(word), scale, offset)), packFloat2x16(fma(code_pair(word >> 8), scale, offset)));
#else
    return uvec2(packFloat2x16(code_pair(word) * scale), packFloat2x16(code_pair(word >> 8) * scale));
#endif
}
void piece_halves(uint unit, uint raw[RAW], out uvec4 halves[PIECE / 8]) {
    uint words[8];
#ifdef FORMAT_RAW
    raw_codes(raw, words);
    const vec4 s = raw_scales(unit, raw);
#else
    [[unroll]] for (uint k = 0; k < 8; ++k) words[k] = raw[k];
    const vec4 s = uintBitsToFloat(uvec4(raw[8], raw[9], raw[10], raw[11]));
#endif
    [[unroll]] for (uint k = 0; k < 8; ++k) {
        const f16vec2 scale = f16vec2(float16_t(k < 4u ? s.x : s.z)), offset = f16vec2(float16_t(k < 4u ? s.y : s.w));
        const uvec2 pair = code_halves(words[k], scale, offset);
        halves[k / 2u][k % 2u * 2u] = pair.x;
        halves[k / 2u][k % 2u * 2u + 1u] = pair.y;
    }
}
#endif
