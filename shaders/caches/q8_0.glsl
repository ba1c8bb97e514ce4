// Codes as f32 lies, in bytes, four to a word; behind all of them the scales (halfs) of 32 elements each.
#define CACHE_COUNTED
layout(set = 0, binding = KEYS_BINDING, std430) buffer Keys { uint d[]; } keys;
layout(set = 0, binding = VALUES_BINDING, std430) buffer Values { uint d[]; } values;
layout(set = 0, binding = KEYS_BINDING, std430) buffer KeyScales { uint16_t d[]; } key_scales;
layout(set = 0, binding = VALUES_BINDING, std430) buffer ValueScales { uint16_t d[]; } value_scales;
uint cache_tokens;  // kv heads * capacity: where the scales begin
uint scale_at(uint token, uint dims, uint i) { return cache_tokens * (dims / 2u) + token * (dims / 32u) + i / 32u; }
float key_at(uint token, uint dims, uint i) {
    const float d = unpackHalf2x16(uint(key_scales.d[scale_at(token, dims, i)])).x;
    return d * float(signed_byte(keys.d[(token * dims + i) / 4u], i & 3u));
}
float value_at(uint token, uint dims, uint i) {
    const float d = unpackHalf2x16(uint(value_scales.d[scale_at(token, dims, i)])).x;
    return d * float(signed_byte(values.d[(token * dims + i) / 4u], i & 3u));
}
vec4 decoded4(uint w, float d) {
    return d * vec4(signed_byte(w, 0), signed_byte(w, 1), signed_byte(w, 2), signed_byte(w, 3));
}
vec4 key4_at(uint token, uint dims, uint i) {
    const float d = unpackHalf2x16(uint(key_scales.d[scale_at(token, dims, i * 4u)])).x;
    const uint w = keys.d[token * (dims / 4u) + i];
    return decoded4(w, d);
}
vec4 value4_at(uint token, uint dims, uint i) {
    const float d = unpackHalf2x16(uint(value_scales.d[scale_at(token, dims, i * 4u)])).x;
    const uint w = values.d[token * (dims / 4u) + i];
    return decoded4(w, d);
}
uvec4 halves8(uint a, uint b, float d) {
    return uvec4(packHalf2x16(d * vec2(signed_byte(a, 0), signed_byte(a, 1))), packHalf2x16(d * vec2(signed_byte(a, 2), signed_byte(a, 3))),
                 packHalf2x16(d * vec2(signed_byte(b, 0), signed_byte(b, 1))), packHalf2x16(d * vec2(signed_byte(b, 2), signed_byte(b, 3))));
}
uvec4 key_halves8(uint token, uint dims, uint i) {
    const uint at = token * (dims / 4u) + i * 2u;
    return halves8(keys.d[at], keys.d[at + 1u], unpackHalf2x16(uint(key_scales.d[scale_at(token, dims, i * 8u)])).x);
}
uvec4 value_halves8(uint token, uint dims, uint i) {
    const uint at = token * (dims / 4u) + i * 2u;
    return halves8(values.d[at], values.d[at + 1u], unpackHalf2x16(uint(value_scales.d[scale_at(token, dims, i * 8u)])).x);
}
#if defined(CACHE_STORES) || defined(CACHE_KEEPS)
#include "half.glsl"
const bool kScaled = true;
uint scale_bits(float largest) { return to_half_bits(largest / 127.0); }
int code_of(float value, float scale) {
    return scale > 0.0 ? clamp(int(roundEven(value / scale)), -127, 127) : 0;
}
uint codes4(vec4 x, float d) {
    return uint(code_of(x.x, d) & 255) | uint(code_of(x.y, d) & 255) << 8 | uint(code_of(x.z, d) & 255) << 16 |
           uint(code_of(x.w, d) & 255) << 24;
}
vec4 keep_key4(bool stores, uint token, uint dims, uint i, vec4 key, float most) {
    const uint bits = scale_bits(most);
    const float d = unpackHalf2x16(bits).x;
    const uint w = codes4(key, d);
    if (stores) keys.d[token * (dims / 4u) + i] = w;
    if (stores && (i & 7u) == 0u) key_scales.d[scale_at(token, dims, i * 4u)] = uint16_t(bits);
    return decoded4(w, d);
}
vec4 keep_value4(bool stores, uint token, uint dims, uint i, vec4 value, float most) {
    const uint bits = scale_bits(most);
    const float d = unpackHalf2x16(bits).x;
    const uint w = codes4(value, d);
    if (stores) values.d[token * (dims / 4u) + i] = w;
    if (stores && (i & 7u) == 0u) value_scales.d[scale_at(token, dims, i * 4u)] = uint16_t(bits);
    return decoded4(w, d);
}
#endif
#ifdef CACHE_STORES
const uint kStoreGroup = 4;
// Each invocation looks for the largest of all 32 elements: cheaper than one that computes all codes.
void store_key_group(uint token, uint dims, uint first) {
    const uint begin = first & ~31u;
    float most = 0.0;
    for (uint i = 0; i < 32; ++i) most = max(most, abs(new_key(begin + i)));
    const vec4 key = vec4(new_key(first), new_key(first + 1u), new_key(first + 2u), new_key(first + 3u));
    keep_key4(true, token, dims, first / 4u, key, most);
}
#ifndef CACHE_OF_LATENTS
void store_value_group(uint token, uint dims, uint first) {
    const uint begin = first & ~31u;
    float most = 0.0;
    for (uint i = 0; i < 32; ++i) most = max(most, abs(new_value(begin + i)));
    const vec4 value = vec4(new_value(first), new_value(first + 1u), new_value(first + 2u), new_value(first + 3u));
    keep_value4(true, token, dims, first / 4u, value, most);
}
#endif
#endif
