// Keys, or values, of caches/mixed.glsl, which names them: SIDE(name), SIDE_TYPE, SIDE_BINDING; the functions that other
// caches have, too; and new_element(i), where elements come from that are stored.
layout(set = 0, binding = SIDE_BINDING, std430) buffer SIDE(Bytes) { uint8_t d[]; } SIDE(bytes);
layout(set = 0, binding = SIDE_BINDING, std430) buffer SIDE(Halfs) { uint16_t d[]; } SIDE(halfs);
layout(set = 0, binding = SIDE_BINDING, std430) buffer SIDE(Words) { uint d[]; } SIDE(words);
layout(set = 0, binding = SIDE_BINDING, std430) buffer SIDE(Pairs) { uvec2 d[]; } SIDE(pairs);
layout(set = 0, binding = SIDE_BINDING, std430) buffer SIDE(Quads) { uvec4 d[]; } SIDE(quads);
// Scale and minimum of a block.
vec2 SIDE(scales)(uint block, uint blocks) {
    const uint first = first_scale(SIDE_TYPE, blocks);
    if (has_minimum(SIDE_TYPE)) return unpackHalf2x16(SIDE(words).d[first / 2u + block]);
    return vec2(unpackHalf2x16(uint(SIDE(halfs).d[first + block])).x, 0.0);
}
vec4 SIDE_4_AT(uint token, uint dims, uint i) {
    const uint at = token * (dims / 4u) + i;
    if (SIDE_TYPE == kF32) return uintBitsToFloat(SIDE(quads).d[at]);
    if (SIDE_TYPE == kF16 || SIDE_TYPE == kBf16) {
        const uvec2 w = SIDE(pairs).d[at];
        return SIDE_TYPE == kF16 ? vec4(unpackHalf2x16(w.x), unpackHalf2x16(w.y))
                                 : uintBitsToFloat(uvec4(w.x << 16, w.x & 0xFFFF0000u, w.y << 16, w.y & 0xFFFF0000u));
    }
    const uint blocks = cache_tokens * (dims / 32u), block = token * (dims / 32u) + i / 8u, part = i % 8u;
    const vec2 scales = SIDE(scales)(block, blocks);
    if (SIDE_TYPE == kQ8_0) {
        const uint w = SIDE(words).d[at];
        return scales.x * vec4(signed_byte(w, 0), signed_byte(w, 1), signed_byte(w, 2), signed_byte(w, 3));
    }
    const uint codes = SIDE(words).d[block * 4u + part % 4u] >> (part < 4u ? 0u : 4u);
    const uint highs = has_highs(SIDE_TYPE) ? SIDE(words).d[blocks * 4u + block] >> (part * 4u) : 0u;
    return elements4(SIDE_TYPE, codes, highs, scales);
}
float SIDE_AT(uint token, uint dims, uint i) {
    if (SIDE_TYPE == kF32) return uintBitsToFloat(SIDE(words).d[token * dims + i]);
    if (SIDE_TYPE == kF16) return unpackHalf2x16(uint(SIDE(halfs).d[token * dims + i])).x;
    if (SIDE_TYPE == kBf16) return uintBitsToFloat(uint(SIDE(halfs).d[token * dims + i]) << 16);
    return SIDE_4_AT(token, dims, i / 4u)[i & 3u];
}
uvec4 SIDE_HALVES8(uint token, uint dims, uint i) {
    if (SIDE_TYPE == kF16) return SIDE(quads).d[token * (dims / 8u) + i];
    const vec4 a = SIDE_4_AT(token, dims, i * 2u), b = SIDE_4_AT(token, dims, i * 2u + 1u);
    return uvec4(packHalf2x16(a.xy), packHalf2x16(a.zw), packHalf2x16(b.xy), packHalf2x16(b.zw));
}
#ifdef CACHE_STORES
// Each invocation looks for the extremes of all 32 elements: cheaper than one that computes all codes.
void SIDE_STORE(uint token, uint dims, uint first) {
    if (!is_coded(SIDE_TYPE)) {
        for (uint i = first; i < min(first + kStoreGroup, dims); ++i) {
            const uint at = token * dims + i;
            if (SIDE_TYPE == kF32)
                SIDE(words).d[at] = floatBitsToUint(new_element(i));
            else
                SIDE(halfs).d[at] = uint16_t(SIDE_TYPE == kF16 ? to_half_bits(new_element(i)) : to_bfloat_bits(new_element(i)));
        }
        return;
    }
    const uint begin = first & ~31u, part = first % 32u / kStoreGroup;
    float largest = 0.0, low = new_element(begin), high = low;
    bool finite = true;
    for (uint i = 0; i < 32; ++i) {
        const float x = new_element(begin + i);
        if (abs(x) > abs(largest)) largest = x;
        low = min(low, x);
        high = max(high, x);
        finite = finite && !isnan(x) && !isinf(x);
    }
    const uint blocks = cache_tokens * (dims / 32u), block = token * (dims / 32u) + first / 32u;
    const uvec2 bits = finite ? scale_bits(SIDE_TYPE, largest, low, high) : uvec2(0x7E00u);
    const vec2 scales = vec2(unpackHalf2x16(bits.x).x, has_minimum(SIDE_TYPE) ? unpackHalf2x16(bits.y).x : 0.0);
    if (part == 0u) {
        const uint at = first_scale(SIDE_TYPE, blocks) + block * (has_minimum(SIDE_TYPE) ? 2u : 1u);
        SIDE(halfs).d[at] = uint16_t(bits.x);
        if (has_minimum(SIDE_TYPE)) SIDE(halfs).d[at + 1u] = uint16_t(bits.y);
    }
    if (SIDE_TYPE == kQ8_0) {
        [[unroll]] for (uint e = 0; e < kStoreGroup; ++e)
            SIDE(bytes).d[token * dims + first + e] = uint8_t(code_of(SIDE_TYPE, new_element(first + e), scales) & 255u);
        return;
    }
    uint word = 0, highs = 0;
    [[unroll]] for (uint e = 0; e < 4; ++e) {
        const uint i = begin + part * 4u + e;
        word |= (code_of(SIDE_TYPE, new_element(i), scales) & 15u) << (8u * e) |
                (code_of(SIDE_TYPE, new_element(i + 16u), scales) & 15u) << (8u * e + 4u);
    }
    SIDE(words).d[block * 4u + part] = word;
    if (!has_highs(SIDE_TYPE)) return;
    [[unroll]] for (uint e = 0; e < 8; ++e) highs |= code_of(SIDE_TYPE, new_element(first + e), scales) >> 4u << e;
    SIDE(bytes).d[blocks * 16u + block * 4u + part] = uint8_t(highs);
}
#endif
