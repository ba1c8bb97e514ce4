// Fours of rows of the entries, in the same type as the cache of tokens. Wants WIDTH, cache.glsl and ENTRIES_BINDING.
#if defined(CACHE_F32)
layout(set = 0, binding = ENTRIES_BINDING, std430) readonly buffer Entries { float d[]; } entries;
layout(set = 0, binding = ENTRIES_BINDING, std430) readonly buffer Entries4 { vec4 d[]; } entries4;
vec4 whole_entry4(uint row, uint four) { return entries4.d[row * (WIDTH / 4u) + four]; }
float entry_at(uint row, uint i) { return entries.d[row * WIDTH + i]; }
#elif defined(CACHE_F16)
layout(set = 0, binding = ENTRIES_BINDING, std430) readonly buffer Entries { uint16_t d[]; } entries;
layout(set = 0, binding = ENTRIES_BINDING, std430) readonly buffer Entries4 { uvec2 d[]; } entries4;
vec4 whole_entry4(uint row, uint four) {
    const uvec2 k = entries4.d[row * (WIDTH / 4u) + four];
    return vec4(unpackHalf2x16(k.x), unpackHalf2x16(k.y));
}
float entry_at(uint row, uint i) { return unpackHalf2x16(uint(entries.d[row * WIDTH + i])).x; }
#else
layout(set = 0, binding = ENTRIES_BINDING, std430) readonly buffer Entries { uint d[]; } entries;
layout(set = 0, binding = ENTRIES_BINDING, std430) readonly buffer EntryScales { uint16_t d[]; } entry_scales;
float entry_scale(uint row, uint i) {
    const uint at = args.entries_capacity * (WIDTH / 2u) + row * (WIDTH / 32u) + i / 32u;
    return unpackHalf2x16(uint(entry_scales.d[at])).x;
}
vec4 whole_entry4(uint row, uint four) {
    return decoded4(entries.d[row * (WIDTH / 4u) + four], entry_scale(row, four * 4u));
}
float entry_at(uint row, uint i) {
    return entry_scale(row, i) * float(signed_byte(entries.d[(row * WIDTH + i) / 4u], i & 3u));
}
#endif
vec4 entry4(uint row, uint four) {
    if (WIDTH % 4u == 0u) return whole_entry4(row, four);
    vec4 k = vec4(0.0);
    [[unroll]] for (uint e = 0; e < 4; ++e)
        if (four * 4u + e < WIDTH) k[e] = entry_at(row, four * 4u + e);
    return k;
}
