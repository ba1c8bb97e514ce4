// Units of a weight as halfs for matrix units, in two steps, so that loads run ahead of the arithmetic: fetch_unit
// reads the bytes, unit_halves decodes them. Within every four elements the middle two have changed places, in
// activations too (prepare_halves.comp): so two bytes of a word of codes become two halfs by one mask. With
// BFLOAT_MATRICES a weight in bfloat16 goes to matrix units as it is, in its own order.
uint first_half(uint a, uint b) { return (a & 0xFFFFu) | b << 16; }
uint second_half(uint a, uint b) { return a >> 16 | (b & 0xFFFF0000u); }

#ifdef FORMAT_FLOAT
const uint RAW = 16;  // words between the two steps
void fetch_unit(uint m, uint unit, out uint raw[RAW]) {
#ifdef FORMAT_16_BITS
    [[unroll]] for (uint k = 0; k < 4; ++k) {
        const uvec4 q = w128[m].d[unit * 4u + k];
        [[unroll]] for (uint i = 0; i < 4; ++i) raw[k * 4u + i] = q[i];
    }
#else
    [[unroll]] for (uint k = 0; k < 8; ++k) {
        const vec4 v = weight_elements4(m, unit * 8u + k);
        raw[k * 2u] = packHalf2x16(v.xy);
        raw[k * 2u + 1u] = packHalf2x16(v.zw);
    }
#endif
}
void unit_halves(uint unit, uint raw[RAW], out uvec4 halves[4]) {
    [[unroll]] for (uint k = 0; k < 8; ++k) {
        uint a = raw[k * 2u], b = raw[k * 2u + 1u];
#ifdef BFLOAT_MATRICES
        halves[k / 2u][k % 2u * 2u] = a;
        halves[k / 2u][k % 2u * 2u + 1u] = b;
#else
#ifdef FORMAT_16_BITS
        a = format_halves(a);
        b = format_halves(b);
#endif
        halves[k / 2u][k % 2u * 2u] = first_half(a, b);
        halves[k / 2u][k % 2u * 2u + 1u] = second_half(a, b);
#endif
    }
}
#else
#ifdef FORMAT_RAW
const uint RAW = FORMAT_RAW;
#else
const uint RAW = 12;
#endif
void fetch_unit(uint m, uint unit, out uint raw[RAW]) {
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
void unit_halves(uint unit, uint raw[RAW], out uvec4 halves[4]) {
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
