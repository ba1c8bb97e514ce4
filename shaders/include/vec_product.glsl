// sums[r * TOKENS + t] = w[rows[r]] . x[tokens[t]] over this invocation's share, with activations in floats:
// lanes stride over units of 32 elements. Sums in f32, within a lane in order; the caller sums over lanes.
// Wants: ROWS, TOKENS, SUMS = ROWS * TOKENS, x4[] and x1[], the activations as vec4 and float.
// LANE of LANES: which of those that share a row's columns an invocation is, where that is not its subgroup.
// CAN_NORM: with NORMED the activations are still to be normed: they are multiplied with gain4[] or gain1[] here, and
// the sums with norm_of(t) afterwards. Only weights of plain floats: others would read and square them for each row.
#ifndef LANES
#define LANE gl_SubgroupInvocationID
#define LANES gl_SubgroupSize
#endif
#ifdef CAN_NORM
float squares[TOKENS];  // of this invocation's share
void begin_norm() { [[unroll]] for (uint t = 0; t < TOKENS; ++t) squares[t] = 0.0; }
float norm_of(uint t, uint cols, float eps) { return NORMED ? 1.0 / sqrt(subgroupAdd(squares[t]) / float(cols) + eps) : 1.0; }
#endif
#ifdef FORMAT_FLOAT
// Of a weight, under way at once: plain floats take longer to come than to be multiplied.
const uint AHEAD = TOKENS == 1 ? 8 : TOKENS == 2 ? 4 : 1;

void add_products(vec4 w[ROWS], uint x_rows[TOKENS], uint width, uint i, inout float sums[SUMS]) {
    [[unroll]] for (uint t = 0; t < TOKENS; ++t) {
        vec4 x = x4[x_rows[t] * width + i];
#ifdef CAN_NORM
        if (NORMED) {
            squares[t] += dot(x, x);
            x *= gain4[i];
        }
#endif
        [[unroll]] for (uint r = 0; r < ROWS; ++r) sums[r * TOKENS + t] += dot(w[r], x);
    }
}
#endif
void lane_products(uint m, uint rows[ROWS], uint x_rows[TOKENS], uint cols, inout float sums[SUMS]) {
#ifdef FORMAT_FLOAT
    if (cols % 4u == 0u) {
        const uint width = cols / 4u;
        uint i = LANE;
        for (; i + (AHEAD - 1u) * LANES < width; i += AHEAD * LANES) {
            vec4 w[AHEAD][ROWS];
            [[unroll]] for (uint a = 0; a < AHEAD; ++a)
                [[unroll]] for (uint r = 0; r < ROWS; ++r)
                    w[a][r] = weight_elements4(m, rows[r] * width + i + a * LANES);
            [[unroll]] for (uint a = 0; a < AHEAD; ++a) add_products(w[a], x_rows, width, i + a * LANES, sums);
        }
        if (i - LANE >= width) return;
        // What is left is under way at once, too; lanes beyond the end read the last, for nothing.
        vec4 w[AHEAD][ROWS];
        [[unroll]] for (uint a = 0; a < AHEAD; ++a)
            [[unroll]] for (uint r = 0; r < ROWS; ++r)
                w[a][r] = weight_elements4(m, rows[r] * width + min(i + a * LANES, width - 1u));
        [[unroll]] for (uint a = 0; a < AHEAD; ++a)
            if (i + a * LANES < width) add_products(w[a], x_rows, width, i + a * LANES, sums);
        return;
    }
    for (uint i = LANE; i < cols; i += LANES)
        [[unroll]] for (uint t = 0; t < TOKENS; ++t) {
            float x = x1[x_rows[t] * cols + i];
#ifdef CAN_NORM
            if (NORMED) {
                squares[t] += x * x;
                x *= gain1[i];
            }
#endif
            [[unroll]] for (uint r = 0; r < ROWS; ++r)
                sums[r * TOKENS + t] += weight_element(m, rows[r] * cols + i) * x;
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
