// sums[r * TOKENS + t] += w[rows[r]] . x[t] over this invocation's share: lanes stride over units. Wants ROWS, TOKENS,
// SUMS and dot_product.glsl.
void lane_products(uint m, uint rows[ROWS], uint cols, inout float sums[SUMS]) {
    const uint units = cols / 32u;
    for (uint u = gl_SubgroupInvocationID; u < units; u += gl_SubgroupSize) {
        uint words[ROWS][8];
        vec4 scales[ROWS];
        [[unroll]] for (uint r = 0; r < ROWS; ++r) unit_codes(m, rows[r] * units + u, words[r]);
        [[unroll]] for (uint r = 0; r < ROWS; ++r) scales[r] = unit_scales(m, rows[r] * units + u);
        [[unroll]] for (uint t = 0; t < TOKENS; ++t) {
            const uvec4 low = x_low(t, u), high = x_high(t, u);
            const vec4 meta = x_meta(t, u);
            [[unroll]] for (uint r = 0; r < ROWS; ++r)
                sums[r * TOKENS + t] += unit_product(words[r], scales[r], low, high, meta);
        }
    }
}
