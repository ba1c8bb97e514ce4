// for each format
// Part h of y[t] = w[h] * part h of x[t], for many tokens, in f32: see mat_product.glsl. z of the grid over the heads
// that have rows in this part of the weights, the first of them is that of row args.first_flat.
#include "types.glsl"
layout(local_size_x = 256) in;
layout(constant_id = 0) const bool ALIGNED = true;  // parts of x begin at whole fours
layout(push_constant) uniform Push { HeadArgs args; };
#include "weights.glsl"
layout(set = 0, binding = 1, std430) readonly buffer X4 { vec4 x4[]; };
layout(set = 0, binding = 1, std430) readonly buffer X1 { float x1[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Y { float y[]; };
#define STEP_BINDING 3
#include "step.glsl"

uint head;
// Rows of the head that are in other parts are read as the first or last of this.
bool is_here(uint r) { return head * args.rows + r - args.first_flat < args.flat_rows; }
uint weight_row(uint r) {
    const uint flat_row = head * args.rows + r;
    return clamp(flat_row, args.first_flat, args.first_flat + args.flat_rows - 1u) - args.first_flat;
}
float x_element(uint t, uint c) { return x1[t * args.x_width + head * args.x_stride + c]; }
vec4 x_four(uint t, uint c) {
    const uint at = t * args.x_width + head * args.x_stride + c;
    return ALIGNED ? x4[at / 4u] : vec4(x1[at], x1[at + 1u], x1[at + 2u], x1[at + 3u]);
}
#include "mat_product.glsl"

void main() {
    weight_units = args.units;
    head = args.first_flat / args.rows + gl_WorkGroupID.z;
    tile_rows = args.rows;
    tile_cols = args.cols;
    tile_tokens = rows_in_step(args.rows_of);
    const uint first_row = gl_WorkGroupID.x * 64u, first_token = args.first_token + gl_WorkGroupID.y * 64u;
    if (first_token >= tile_tokens) return;
    const uint r = first_row + gl_LocalInvocationID.x % 16u * 4u, t = first_token + gl_LocalInvocationID.x / 16u * 4u;
    vec4 sums[4];
    tile_sums(first_row, first_token, sums);
    [[unroll]] for (uint j = 0; j < 4; ++j)
        [[unroll]] for (uint i = 0; i < 4; ++i)
            if (r + i < args.rows && is_here(r + i) && t + j < tile_tokens)
                y[(t + j) * args.y_width + head * args.y_stride + r + i] = sums[j][i];
}
