// for each format
// y[t][r] (+)= w[r] . x[t] + bias[r] for a few tokens, with activations in f32; with NORMED they are normed here.
// Grid: x strides over groups of ROWS rows, of which a subgroup has one at a time; y is over groups of TOKENS tokens.
// Sums in f32: a lane adds units of 32 columns in order (of plain floats fours, or single columns where cols % 4 != 0),
// lanes stride over them, and subgroupAdd() adds the lanes. Nothing is in shared memory.
// ROWS rows share each load of the activations, and TOKENS tokens each load and decoding of a weight.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint ROWS = 2;
layout(constant_id = 2) const uint TOKENS = 1;
layout(constant_id = 3) const bool NORMED = false;
const uint SUMS = ROWS * TOKENS;
layout(push_constant) uniform Push { LinearArgs args; };
#include "weights.glsl"
layout(set = 0, binding = 1, std430) readonly buffer X4 { vec4 x4[]; };
layout(set = 0, binding = 1, std430) readonly buffer X1 { float x1[]; };
layout(set = 0, binding = 2, std430) buffer Y { float y[]; };
#define STEP_BINDING 3
#include "step.glsl"
layout(set = 0, binding = 4, std430) readonly buffer Bias { float bias[]; };
layout(set = 0, binding = 5, std430) readonly buffer Gain4 { vec4 gain4[]; };
layout(set = 0, binding = 5, std430) readonly buffer Gain1 { float gain1[]; };
#define CAN_NORM
#include "vec_product.glsl"

void main() {
    weight_units = args.units;
    const uint tokens = rows_in_step(args.rows_of);
    const uint first_token = args.first_token + gl_WorkGroupID.y * TOKENS;
    if (first_token >= tokens) return;
    uint x_rows[TOKENS];
    [[unroll]] for (uint t = 0; t < TOKENS; ++t) x_rows[t] = min(first_token + t, tokens - 1u);

    const uint step = gl_NumWorkGroups.x * gl_NumSubgroups * ROWS;
    for (uint first = (gl_WorkGroupID.x * gl_NumSubgroups + gl_SubgroupID) * ROWS; first < args.rows; first += step) {
        uint rows[ROWS];
        float sums[SUMS];
        [[unroll]] for (uint r = 0; r < ROWS; ++r) {
            rows[r] = min(first + r, args.rows - 1u);
            [[unroll]] for (uint t = 0; t < TOKENS; ++t) sums[r * TOKENS + t] = 0.0;
        }
        begin_norm();
        lane_products(0u, rows, x_rows, args.cols, sums);
        float norms[TOKENS];
        [[unroll]] for (uint t = 0; t < TOKENS; ++t) norms[t] = norm_of(t, args.cols, args.eps);
        [[unroll]] for (uint r = 0; r < ROWS; ++r)
            [[unroll]] for (uint t = 0; t < TOKENS; ++t) {
                float sum = subgroupAdd(sums[r * TOKENS + t]) * norms[t];
                if (!subgroupElect() || first + r >= args.rows || first_token + t >= tokens) continue;
                const uint row = args.first_row + rows[r], at = x_rows[t] * args.stride + row;
                if (args.has_bias != 0u) sum += bias[row];
                y[at] = args.accumulate != 0u ? y[at] + sum : sum;
            }
    }
}
