// Keys, and values, (kv heads, capacity, head size) each.
layout(set = 0, binding = KEYS_BINDING, std430) buffer Keys { float d[]; } keys;
layout(set = 0, binding = VALUES_BINDING, std430) buffer Values { float d[]; } values;
layout(set = 0, binding = KEYS_BINDING, std430) buffer Keys4 { vec4 d[]; } keys4;
layout(set = 0, binding = VALUES_BINDING, std430) buffer Values4 { vec4 d[]; } values4;
float key_at(uint token, uint dims, uint i) { return keys.d[token * dims + i]; }
float value_at(uint token, uint dims, uint i) { return values.d[token * dims + i]; }
vec4 key4_at(uint token, uint dims, uint i) { return keys4.d[token * (dims / 4u) + i]; }
vec4 value4_at(uint token, uint dims, uint i) { return values4.d[token * (dims / 4u) + i]; }
uvec4 key_halves8(uint token, uint dims, uint i) {
    const vec4 a = keys4.d[token * (dims / 4u) + i * 2u], b = keys4.d[token * (dims / 4u) + i * 2u + 1u];
    return uvec4(packHalf2x16(a.xy), packHalf2x16(a.zw), packHalf2x16(b.xy), packHalf2x16(b.zw));
}
uvec4 value_halves8(uint token, uint dims, uint i) {
    uvec4 v;
    for (uint e = 0; e < 4; ++e)
        v[e] = packHalf2x16(vec2(value_at(token, dims, i * 8u + e * 2u), value_at(token, dims, i * 8u + e * 2u + 1u)));
    return v;
}
#ifdef CACHE_STORES
const uint kStoreGroup = 1;  // elements that one invocation stores
void store_key_group(uint token, uint dims, uint first) { keys.d[token * dims + first] = new_key(first); }
#ifndef CACHE_OF_LATENTS
void store_value_group(uint token, uint dims, uint first) { values.d[token * dims + first] = new_value(first); }
#endif
#endif
#ifdef CACHE_KEEPS
const bool kScaled = false;
// Elements 4i .. 4i + 3 as the cache holds them; `stores`: it gets them as well. Where kScaled, `most` is the largest
// magnitude of the 32 elements that they are of.
vec4 keep_key4(bool stores, uint token, uint dims, uint i, vec4 key, float most) {
    if (stores) keys4.d[token * (dims / 4u) + i] = key;
    return key;
}
vec4 keep_value4(bool stores, uint token, uint dims, uint i, vec4 value, float most) {
    if (stores) values4.d[token * (dims / 4u) + i] = value;
    return value;
}
#endif
