// for each quantized format
// As gated_vec with activations in int8; see linear_dot.
#define MATRICES 2
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint ROWS = 1;
layout(constant_id = 2) const uint TOKENS = 1;
layout(constant_id = 3) const uint COLS = 4096;
const uint SUMS = ROWS * TOKENS;
layout(push_constant) uniform Push { LinearArgs args; };
#include "dot.glsl"
#include "weights.glsl"
#include "act.glsl"
layout(set = 0, binding = 1, std430) readonly buffer Prepared { uvec4 prepared[]; };
layout(set = 0, binding = 2, std430) buffer Y { float y[]; };
#define STEP_BINDING 3
#include "step.glsl"
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
        float gates[SUMS], ups[SUMS];
        [[unroll]] for (uint r = 0; r < ROWS; ++r) rows[r] = min(first + r, args.rows - 1u);
        [[unroll]] for (uint i = 0; i < SUMS; ++i) gates[i] = ups[i] = 0.0;
        lane_products(0u, rows, COLS, gates);
        lane_products(1u, rows, COLS, ups);
        [[unroll]] for (uint r = 0; r < ROWS; ++r)
            [[unroll]] for (uint t = 0; t < TOKENS; ++t) {
                const float gate = subgroupAdd(gates[r * TOKENS + t]), up = subgroupAdd(ups[r * TOKENS + t]);
                if (!subgroupElect() || first + r >= args.rows || first_token + t >= tokens) continue;
                y[(first_token + t) * args.stride + args.first_row + rows[r]] = act_times(args.act, gate, up);
            }
    }
}
