// Elements 4 * i .. of a head's queries or keys, which begin at `from`; zeros behind their end. Wants qkv, qkv4, KEY_DIM and VALUE_DIM.
vec4 quad_at(uint from, uint i) {
    if (KEY_DIM % 4 == 0 && VALUE_DIM % 4 == 0) return i < KEY_DIM / 4 ? qkv4[from / 4u + i] : vec4(0.0);
    vec4 quad = vec4(0.0);
    [[unroll]] for (uint e = 0; e < 4; ++e)
        if (4 * i + e < KEY_DIM) quad[e] = qkv[from + 4 * i + e];
    return quad;
}
