// for each quantized format
// As linear_vec with activations in int8 that quantize.comp prepared.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint ROWS = 2;
layout(constant_id = 2) const uint TOKENS = 1;
layout(constant_id = 3) const uint COLS = 4096;
const uint SUMS = ROWS * TOKENS;
layout(push_constant) uniform Push { LinearArgs args; };
#include "dot.glsl"
#include "weights.glsl"
layout(set = 0, binding = 1, std430) readonly buffer Prepared { uvec4 prepared[]; };
layout(set = 0, binding = 2, std430) buffer Y { float y[]; };
#define STEP_BINDING 3
#include "step.glsl"
layout(set = 0, binding = 4, std430) readonly buffer Bias { float bias[]; };
#include "prepared_activations.glsl"
#include "dot_product.glsl"
#include "few_products.glsl"

void main() {
    weight_units = args.units;
    const uint tokens = rows_in_step(args.rows_of);
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
        lane_products(0u, rows, COLS, sums);
        [[unroll]] for (uint r = 0; r < ROWS; ++r)
            [[unroll]] for (uint t = 0; t < TOKENS; ++t) {
                float sum = subgroupAdd(sums[r * TOKENS + t]);
                if (!subgroupElect() || first + r >= args.rows || first_token + t >= tokens) continue;
                const uint row = args.first_row + rows[r], at = (first_token + t) * args.stride + row;
                if (args.has_bias != 0u) sum += bias[row];
                y[at] = args.accumulate != 0u ? y[at] + sum : sum;
            }
    }
}
