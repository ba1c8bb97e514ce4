// Codes as f32 lies, in bytes, four to a word; behind all of them the scales (halfs) of 32 elements each.
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
vec4 key4_at(uint token, uint dims, uint i) {
    const float d = unpackHalf2x16(uint(key_scales.d[scale_at(token, dims, i * 4u)])).x;
    const uint w = keys.d[token * (dims / 4u) + i];
    return d * vec4(signed_byte(w, 0), signed_byte(w, 1), signed_byte(w, 2), signed_byte(w, 3));
}
vec4 value4_at(uint token, uint dims, uint i) {
    const float d = unpackHalf2x16(uint(value_scales.d[scale_at(token, dims, i * 4u)])).x;
    const uint w = values.d[token * (dims / 4u) + i];
    return d * vec4(signed_byte(w, 0), signed_byte(w, 1), signed_byte(w, 2), signed_byte(w, 3));
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
#ifdef CACHE_STORES
#include "half.glsl"
const uint kStoreGroup = 32;
uint scale_bits(float largest) { return to_half_bits(largest / 127.0); }
int code_of(float value, float scale) {
    return scale > 0.0 ? clamp(int(roundEven(value / scale)), -127, 127) : 0;
}
void store_group(uint token, uint dims, uint first) {
    float most_k = 0.0, most_v = 0.0;
    for (uint i = 0; i < 32; ++i) {
        most_k = max(most_k, abs(new_key(first + i)));
        most_v = max(most_v, abs(new_value(first + i)));
    }
    const uint bits_k = scale_bits(most_k), bits_v = scale_bits(most_v);
    const float dk = unpackHalf2x16(bits_k).x, dv = unpackHalf2x16(bits_v).x;
    key_scales.d[scale_at(token, dims, first)] = uint16_t(bits_k);
    value_scales.d[scale_at(token, dims, first)] = uint16_t(bits_v);
    for (uint w = 0; w < 8; ++w) {
        uint k = 0, v = 0;
        for (uint i = 0; i < 4; ++i) {
            k |= uint(code_of(new_key(first + w * 4 + i), dk) & 255) << (8 * i);
            v |= uint(code_of(new_value(first + w * 4 + i), dv) & 255) << (8 * i);
        }
        keys.d[(token * dims + first) / 4u + w] = k;
        values.d[(token * dims + first) / 4u + w] = v;
    }
}
#endif
