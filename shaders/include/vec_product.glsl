// sums[r * TOKENS + t] = w[rows[r]] . x[tokens[t]] over this invocation's share, with activations in floats:
// lanes stride over units of 32 elements. Sums in f32, within a lane in order; the caller sums over lanes.
// Wants: ROWS, TOKENS, SUMS = ROWS * TOKENS, x4[] and x1[], the activations as vec4 and float.
#ifdef FORMAT_FLOAT
// Of a weight, under way at once: plain floats take longer to come than to be multiplied.
const uint AHEAD = TOKENS == 1 ? 8 : TOKENS == 2 ? 4 : 1;

void add_products(vec4 w[ROWS], uint x_rows[TOKENS], uint width, uint i, inout float sums[SUMS]) {
    [[unroll]] for (uint t = 0; t < TOKENS; ++t) {
        const vec4 x = x4[x_rows[t] * width + i];
        [[unroll]] for (uint r = 0; r < ROWS; ++r) sums[r * TOKENS + t] += dot(w[r], x);
    }
}
#endif
void lane_products(uint m, uint rows[ROWS], uint x_rows[TOKENS], uint cols, inout float sums[SUMS]) {
#ifdef FORMAT_FLOAT
    if (cols % 4u == 0u) {
        const uint width = cols / 4u;
        uint i = gl_SubgroupInvocationID;
        for (; i + (AHEAD - 1u) * gl_SubgroupSize < width; i += AHEAD * gl_SubgroupSize) {
            vec4 w[AHEAD][ROWS];
            [[unroll]] for (uint a = 0; a < AHEAD; ++a)
                [[unroll]] for (uint r = 0; r < ROWS; ++r)
                    w[a][r] = weight_elements4(m, rows[r] * width + i + a * gl_SubgroupSize);
            [[unroll]] for (uint a = 0; a < AHEAD; ++a) add_products(w[a], x_rows, width, i + a * gl_SubgroupSize, sums);
        }
        for (; i < width; i += gl_SubgroupSize) {
            vec4 w[ROWS];
            [[unroll]] for (uint r = 0; r < ROWS; ++r) w[r] = weight_elements4(m, rows[r] * width + i);
            add_products(w, x_rows, width, i, sums);
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
