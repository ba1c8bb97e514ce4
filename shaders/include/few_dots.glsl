// Products of a few rows in int8, whose TOKENS a subgroup multiplies with ROWS rows of each matrix at a time: the kernels
// linear_dot and gated_dot. Wants MATRICES, dot.glsl, weights.glsl, prepared[] and
//   void put(uint row, uint token, float sums[MATRICES]);
const uint MOST_AHEAD = 4 / (MATRICES * ROWS) > 1 ? 4 / (MATRICES * ROWS) : 1;
#include "prepared_activations.glsl"
#include "dot_product.glsl"
#include "own_product.glsl"
const uint RESULTS = ROWS * TOKENS;

void few_products(uint tokens) {
    const uint first_token = gl_WorkGroupID.y * TOKENS;
    if (first_token >= tokens) return;
    x_first = first_token;
    x_last = tokens - 1u;
    const uint step = gl_NumWorkGroups.x * gl_NumSubgroups * ROWS;
    for (uint first = (gl_WorkGroupID.x * gl_NumSubgroups + gl_SubgroupID) * ROWS; first < args.rows; first += step) {
        uint rows[ROWS];
        float sums[SUMS];
        [[unroll]] for (uint r = 0; r < ROWS; ++r) rows[r] = min(first + r, args.rows - 1u);
        [[unroll]] for (uint i = 0; i < SUMS; ++i) sums[i] = 0.0;
        own_products(rows, sums);
        // Each lane puts one result, so that they are written side by side.
        [[unroll]] for (uint base = 0; base < RESULTS; base += SUBGROUP) {
            float mine[MATRICES];
            [[unroll]] for (uint i = 0; i < SUBGROUP && base + i < RESULTS; ++i)
                [[unroll]] for (uint m = 0; m < MATRICES; ++m) {
                    const float sum = subgroupAdd(sums[m * RESULTS + base + i]);
                    if (gl_SubgroupInvocationID == i) mine[m] = sum;
                }
            const uint result = base + gl_SubgroupInvocationID;
            const uint row = first + result / TOKENS, t = first_token + result % TOKENS;
            if (result < RESULTS && row < args.rows && t < tokens) put(row, t, mine);
        }
    }
}
