// As f32, in halfs. Elements 8i .. 8i + 7 as halfs are for kernels with matrix units.
layout(set = 0, binding = KEYS_BINDING, std430) buffer Keys { uint16_t d[]; } keys;
layout(set = 0, binding = VALUES_BINDING, std430) buffer Values { uint16_t d[]; } values;
layout(set = 0, binding = KEYS_BINDING, std430) buffer Keys4 { uvec2 d[]; } keys4;
layout(set = 0, binding = VALUES_BINDING, std430) buffer Values4 { uvec2 d[]; } values4;
float key_at(uint token, uint dims, uint i) { return unpackHalf2x16(uint(keys.d[token * dims + i])).x; }
float value_at(uint token, uint dims, uint i) { return unpackHalf2x16(uint(values.d[token * dims + i])).x; }
vec4 key4_at(uint token, uint dims, uint i) {
    const uvec2 k = keys4.d[token * (dims / 4u) + i];
    return vec4(unpackHalf2x16(k.x), unpackHalf2x16(k.y));
}
vec4 value4_at(uint token, uint dims, uint i) {
    const uvec2 v = values4.d[token * (dims / 4u) + i];
    return vec4(unpackHalf2x16(v.x), unpackHalf2x16(v.y));
}
layout(set = 0, binding = KEYS_BINDING, std430) buffer Keys8 { uvec4 d[]; } keys8;
layout(set = 0, binding = VALUES_BINDING, std430) buffer Values8 { uvec4 d[]; } values8;
uvec4 key_halves8(uint token, uint dims, uint i) { return keys8.d[token * (dims / 8u) + i]; }
uvec4 value_halves8(uint token, uint dims, uint i) { return values8.d[token * (dims / 8u) + i]; }
#if defined(CACHE_STORES) || defined(CACHE_KEEPS)
#include "half.glsl"
#endif
#ifdef CACHE_STORES
const uint kStoreGroup = 1;
void store_key_group(uint token, uint dims, uint first) {
    keys.d[token * dims + first] = uint16_t(to_half_bits(new_key(first)));
}
#ifndef CACHE_OF_LATENTS
void store_value_group(uint token, uint dims, uint first) {
    values.d[token * dims + first] = uint16_t(to_half_bits(new_value(first)));
}
#endif
#endif
#ifdef CACHE_KEEPS
const bool kScaled = false;
uvec2 halves4(vec4 x) {
    return uvec2(to_half_bits(x.x) | to_half_bits(x.y) << 16, to_half_bits(x.z) | to_half_bits(x.w) << 16);
}
vec4 keep_key4(bool stores, uint token, uint dims, uint i, vec4 key, float most) {
    const uvec2 k = halves4(key);
    if (stores) keys4.d[token * (dims / 4u) + i] = k;
    return vec4(unpackHalf2x16(k.x), unpackHalf2x16(k.y));
}
vec4 keep_value4(bool stores, uint token, uint dims, uint i, vec4 value, float most) {
    const uvec2 v = halves4(value);
    if (stores) values4.d[token * (dims / 4u) + i] = v;
    return vec4(unpackHalf2x16(v.x), unpackHalf2x16(v.y));
}
#endif
