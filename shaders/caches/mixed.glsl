// Keys and values each of any type, which a constant names: one module serves all pairs. Quantized types have the high bits
// of all blocks of 32 elements behind their codes, and then their scales.
#define CACHE_COUNTED
layout(constant_id = 30) const uint KEY_TYPE = 0;
layout(constant_id = 31) const uint VALUE_TYPE = 0;
// The numbers of CacheType.
const uint kF16 = 0, kQ8_0 = 1, kF32 = 2, kBf16 = 3, kQ5_1 = 4, kQ5_0 = 5, kQ4_1 = 6, kQ4_0 = 7, kIq4Nl = 8;
uint cache_tokens;  // kv heads * capacity
bool is_coded(uint type) { return type == kQ8_0 || type > kBf16; }
bool has_highs(uint type) { return type == kQ5_1 || type == kQ5_0; }
bool has_minimum(uint type) { return type == kQ5_1 || type == kQ4_1; }
// Where the scales of all blocks begin, counted in halfs.
uint first_scale(uint type, uint blocks) { return blocks * (type == kQ8_0 ? 16u : has_highs(type) ? 10u : 8u); }
float zero_code(uint type) { return type == kQ4_0 ? 8.0 : type == kQ5_0 ? 16.0 : 0.0; }
// iq4_nl's levels, four to a word.
float level_of(uint code) {
    const uint w = code < 8u ? (code < 4u ? 0xBFAD9881u : 0xF6EADDCFu) : (code < 12u ? 0x26190D01u : 0x71594535u);
    return float(signed_byte(w, code & 3u));
}
// Four elements, from the lower halves of four bytes and from four high bits.
vec4 elements4(uint type, uint codes, uint highs, vec2 scales) {
    uvec4 c = uvec4(codes, codes >> 8, codes >> 16, codes >> 24) & 15u;
    if (has_highs(type)) c |= (uvec4(highs, highs >> 1, highs >> 2, highs >> 3) & 1u) << 4;
    if (type == kIq4Nl) return scales.x * vec4(level_of(c.x), level_of(c.y), level_of(c.z), level_of(c.w));
    return scales.x * (vec4(c) - zero_code(type)) + scales.y;
}
#ifdef CACHE_STORES
#include "half.glsl"
const uint kStoreGroup = 8;
uint to_bfloat_bits(float value) {
    const uint bits = floatBitsToUint(value);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return bits >> 16 | 0x40u;
    return (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
}
uint finite_half(float value) { return to_half_bits(clamp(value, -65504.0, 65504.0)); }
// The bits of scale and minimum.
uvec2 scale_bits(uint type, float largest, float low, float high) {
    if (type == kQ8_0) return uvec2(finite_half(abs(largest) / 127.0), 0u);
    if (type == kIq4Nl) return uvec2(finite_half(largest / -127.0), 0u);
    if (!has_minimum(type)) return uvec2(finite_half(largest / -zero_code(type)), 0u);
    const float most = has_highs(type) ? 31.0 : 15.0;
    return uvec2(finite_half(high / most - low / most), finite_half(low));
}
// A code, of iq4_nl that of the nearest level.
uint code_of(uint type, float x, vec2 scales) {
    const float scaled = scales.x != 0.0 ? (x - scales.y) / scales.x : 0.0;
    if (type == kQ8_0) return uint(int(clamp(roundEven(scaled), -127.0, 127.0)));
    if (type != kIq4Nl) return uint(clamp(roundEven(scaled) + zero_code(type), 0.0, has_highs(type) ? 31.0 : 15.0));
    uint code = 0;
    for (uint i = 1; i < 16; ++i) code += scaled > (level_of(i - 1u) + level_of(i)) * 0.5 ? 1u : 0u;
    return code;
}
#endif
#define SIDE(name) key_##name
#define SIDE_TYPE KEY_TYPE
#define SIDE_BINDING KEYS_BINDING
#define SIDE_AT key_at
#define SIDE_4_AT key4_at
#define SIDE_HALVES8 key_halves8
#define SIDE_STORE store_key_group
#define new_element new_key
#include "mixed_side.glsl"
#undef SIDE
#undef SIDE_TYPE
#undef SIDE_BINDING
#undef SIDE_AT
#undef SIDE_4_AT
#undef SIDE_HALVES8
#undef SIDE_STORE
#undef new_element
#define SIDE(name) value_##name
#define SIDE_TYPE VALUE_TYPE
#define SIDE_BINDING VALUES_BINDING
#define SIDE_AT value_at
#define SIDE_4_AT value4_at
#define SIDE_HALVES8 value_halves8
#define SIDE_STORE store_value_group
#define new_element new_value
#include "mixed_side.glsl"
#ifdef CACHE_KEEPS
// A kernel before this one stores all rows.
const bool kScaled = false;
vec4 keep_key4(bool stores, uint token, uint dims, uint i, vec4 key, float most) { return key; }
vec4 keep_value4(bool stores, uint token, uint dims, uint i, vec4 value, float most) { return value; }
#endif
