// for each format
// Part h of y[t] = w[h] * part h of x[t], for a few tokens: x of the grid over rows of the weights, counted over all
// heads, y over groups of TOKENS tokens. LANES invocations share a row: heads have few columns.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 128;
layout(constant_id = 1) const uint TOKENS = 1;
layout(constant_id = 2) const bool ALIGNED = true;  // parts of x begin at whole fours
const uint LANES = 4;
layout(push_constant) uniform Push { HeadArgs args; };
#include "weights.glsl"
layout(set = 0, binding = 1, std430) readonly buffer X4 { vec4 x4[]; };
layout(set = 0, binding = 1, std430) readonly buffer X1 { float x1[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Y { float y[]; };
#define STEP_BINDING 3
#include "step.glsl"
shared float parts[THREADS * TOKENS];

vec4 activations4(uint at) { return ALIGNED ? x4[at / 4u] : vec4(x1[at], x1[at + 1u], x1[at + 2u], x1[at + 3u]); }

// This invocation's share of the products of a row with each token's activations, which begin at x_at.
void row_products(uint row, uint lane, uint x_at[TOKENS], out float sums[TOKENS]) {
    [[unroll]] for (uint t = 0; t < TOKENS; ++t) sums[t] = 0.0;
#ifdef FORMAT_FLOAT
    if (args.cols % 4u != 0u) {
        for (uint c = lane; c < args.cols; c += LANES)
            [[unroll]] for (uint t = 0; t < TOKENS; ++t) sums[t] += weight_element(0u, row * args.cols + c) * x1[x_at[t] + c];
        return;
    }
    for (uint four = lane; four < args.cols / 4u; four += LANES) {
        const vec4 w = weight_elements4(0u, row * (args.cols / 4u) + four);
        [[unroll]] for (uint t = 0; t < TOKENS; ++t) sums[t] += dot(w, activations4(x_at[t] + four * 4u));
    }
#else
    const uint units = args.cols / 32u;
    for (uint u = lane; u < units; u += LANES) {
        uint words[8];
        unit_codes(0u, row * units + u, words);
        const vec4 s = unit_scales(0u, row * units + u);
        [[unroll]] for (uint k = 0; k < 8; ++k) {
            const vec4 w = k < 4u ? decode4(words[k], s.x, s.y) : decode4(words[k], s.z, s.w);
            [[unroll]] for (uint t = 0; t < TOKENS; ++t) sums[t] += dot(w, activations4(x_at[t] + u * 32u + k * 4u));
        }
    }
#endif
}

void main() {
    weight_units = args.units;
    const uint tokens = rows_in_step(args.rows_of), first_token = gl_WorkGroupID.y * TOKENS;
    if (first_token >= tokens) return;
    const uint tid = gl_LocalInvocationID.x, lane = tid % LANES, rows = THREADS / LANES;
    for (uint first = gl_WorkGroupID.x * rows; first < args.flat_rows; first += gl_NumWorkGroups.x * rows) {
        const uint own = first + tid / LANES, row = min(own, args.flat_rows - 1u);
        const uint head = (args.first_flat + row) / args.rows, r = (args.first_flat + row) % args.rows;
        uint x_at[TOKENS];
        [[unroll]] for (uint t = 0; t < TOKENS; ++t)
            x_at[t] = min(first_token + t, tokens - 1u) * args.x_width + head * args.x_stride;
        float sums[TOKENS];
        row_products(row, lane, x_at, sums);
        barrier();  // the sums before are read
        [[unroll]] for (uint t = 0; t < TOKENS; ++t) parts[t * THREADS + tid] = sums[t];
        barrier();
        for (uint t = lane; t < TOKENS; t += LANES) {
            float sum = 0.0;
            [[unroll]] for (uint l = 0; l < LANES; ++l) sum += parts[t * THREADS + tid - lane + l];
            if (own < args.flat_rows && first_token + t < tokens)
                y[(first_token + t) * args.y_width + head * args.y_stride + r] = sum;
        }
    }
}
