// for each format
// y[t][r] (+)= w[r] . x[t] + bias[r] for many tokens, in f32: see mat_product.glsl.
#include "types.glsl"
layout(local_size_x = 256) in;
layout(push_constant) uniform Push { LinearArgs args; };
#include "weights.glsl"
layout(set = 0, binding = 1, std430) readonly buffer X4 { vec4 x4[]; };
layout(set = 0, binding = 1, std430) readonly buffer X1 { float x1[]; };
layout(set = 0, binding = 2, std430) buffer Y { float y[]; };
#define STEP_BINDING 3
#include "step.glsl"
layout(set = 0, binding = 4, std430) readonly buffer Bias { float bias[]; };

uint weight_row(uint r) { return r; }
float x_element(uint t, uint c) { return x1[t * args.cols + c]; }
vec4 x_four(uint t, uint c) { return x4[(t * args.cols + c) / 4u]; }
#include "mat_product.glsl"

void main() {
    weight_units = args.units;
    tile_rows = args.rows;
    tile_cols = args.cols;
    tile_tokens = rows_in_step(args.rows_of);
    const uint first_row = gl_WorkGroupID.x * 64u, first_token = args.first_token + gl_WorkGroupID.y * 64u;
    if (first_token >= tile_tokens) return;
    const uint r = gl_LocalInvocationID.x % 16u * 4u, t = gl_LocalInvocationID.x / 16u * 4u;
    vec4 sums[4];
    tile_sums(first_row, first_token, sums);
    [[unroll]] for (uint j = 0; j < 4; ++j)
        [[unroll]] for (uint i = 0; i < 4; ++i) {
            if (first_row + r + i >= args.rows || first_token + t + j >= tile_tokens) continue;
            const uint row = args.first_row + first_row + r + i, at = (first_token + t + j) * args.stride + row;
            float sum = sums[j][i];
            if (args.has_bias != 0u) sum += bias[row];
            y[at] = args.accumulate != 0u ? y[at] + sum : sum;
        }
}
