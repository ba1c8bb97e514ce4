// sums[r * TOKENS + t] = w[rows[r]] . x[tokens[t]] over this invocation's share, with activations in floats:
// lanes stride over units of 32 elements. Sums in f32, within a lane in order; the caller sums over lanes.
// Wants: ROWS, TOKENS, SUMS = ROWS * TOKENS, x4[] and x1[], the activations as vec4 and float.
void lane_products(uint m, uint rows[ROWS], uint x_rows[TOKENS], uint cols, inout float sums[SUMS]) {
#ifdef FORMAT_FLOAT
    if (cols % 4u == 0u) {
        for (uint i = gl_SubgroupInvocationID; i < cols / 4u; i += gl_SubgroupSize) {
            vec4 w[ROWS];
            [[unroll]] for (uint r = 0; r < ROWS; ++r) w[r] = weight_elements4(m, rows[r] * (cols / 4u) + i);
            [[unroll]] for (uint t = 0; t < TOKENS; ++t) {
                const vec4 x = x4[x_rows[t] * (cols / 4u) + i];
                [[unroll]] for (uint r = 0; r < ROWS; ++r) sums[r * TOKENS + t] += dot(w[r], x);
            }
        }
        return;
    }
    for (uint i = gl_SubgroupInvocationID; i < cols; i += gl_SubgroupSize)
        [[unroll]] for (uint r = 0; r < ROWS; ++r) {
            const float w = weight_element(m, rows[r] * cols + i);
            [[unroll]] for (uint t = 0; t < TOKENS; ++t) sums[r * TOKENS + t] += w * x1[x_rows[t] * cols + i];
        }
#else
    const uint units = cols / 32u;
    for (uint u = gl_SubgroupInvocationID; u < units; u += gl_SubgroupSize) {
        [[unroll]] for (uint r = 0; r < ROWS; ++r) {
            uint words[8];
            unit_codes(m, rows[r] * units + u, words);
            const vec4 s = unit_scales(m, rows[r] * units + u);
            [[unroll]] for (uint k = 0; k < 8; ++k) {
                const vec4 w = k < 4u ? decode4(words[k], s.x, s.y) : decode4(words[k], s.z, s.w);
                [[unroll]] for (uint t = 0; t < TOKENS; ++t)
                    sums[r * TOKENS + t] += dot(w, x4[(x_rows[t] * units + u) * 8u + k]);
            }
        }
    }
#endif
}
