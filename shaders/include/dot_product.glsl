// As vec_product.glsl, with activations in int8: products of codes are exact, scales are applied per half unit.
// Wants ROWS, TOKENS, SUMS, and x_low(t, u), x_high(t, u), x_meta(t, u).

// Of a unit, with its codes and scales, and the activations'.
float unit_product(uint words[8], vec4 s, uvec4 low, uvec4 high, vec3 meta) {
    int a = 0, b = 0;
    [[unroll]] for (uint k = 0; k < 4; ++k) {
        a += DOT4(words[k], low[k]);
        b += DOT4(words[k + 4], high[k]);
    }
    const float bias = float(FORMAT_BIAS);
#ifdef FORMAT_HALVES
    float sum = s.x * (meta.x * float(a) - bias * meta.y) + s.z * (meta.x * float(b) - bias * meta.z);
#ifdef FORMAT_OFFSET
    sum += s.y * meta.y + s.w * meta.z;
#endif
#else
    float sum = s.x * (meta.x * float(a + b) - bias * (meta.y + meta.z));
#ifdef FORMAT_OFFSET
    sum += s.y * (meta.y + meta.z);
#endif
#endif
    return sum;
}

void lane_products(uint m, uint rows[ROWS], uint cols, inout float sums[SUMS]) {
    const uint units = cols / 32u;
    for (uint u = gl_SubgroupInvocationID; u < units; u += gl_SubgroupSize) {
        uint words[ROWS][8];
        vec4 scales[ROWS];
        [[unroll]] for (uint r = 0; r < ROWS; ++r) unit_codes(m, rows[r] * units + u, words[r]);
        [[unroll]] for (uint r = 0; r < ROWS; ++r) scales[r] = unit_scales(m, rows[r] * units + u);
        [[unroll]] for (uint t = 0; t < TOKENS; ++t) {
            const uvec4 low = x_low(t, u), high = x_high(t, u);
            const vec3 meta = x_meta(t, u);
            [[unroll]] for (uint r = 0; r < ROWS; ++r)
                sums[r * TOKENS + t] += unit_product(words[r], scales[r], low, high, meta);
        }
    }
}
