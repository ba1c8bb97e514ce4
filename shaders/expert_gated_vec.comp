// for each format
// Per token and chosen expert e: y[t][place][r] = act(gate[e][r] . x[t]) * (up[e][r] . x[t]), with biases. As expert_vec.
#define MATRICES 2
#include "types.glsl"
layout(local_size_x_id = 0) in;
const uint ROWS = 1;
const uint TOKENS = 1;
const uint SUMS = ROWS * TOKENS;
layout(push_constant) uniform Push { ExpertArgs args; };
#include "weights.glsl"
#include "act.glsl"
layout(set = 0, binding = 1, std430) readonly buffer X4 { vec4 x4[]; };
layout(set = 0, binding = 1, std430) readonly buffer X1 { float x1[]; };
layout(set = 0, binding = 2, std430) buffer Y { float y[]; };
#define STEP_BINDING 3
#include "step.glsl"
layout(set = 0, binding = 4, std430) readonly buffer Ids { int ids[]; };
layout(set = 0, binding = 5, std430) readonly buffer GateBias { float gate_bias[]; };
layout(set = 0, binding = 6, std430) readonly buffer UpBias { float up_bias[]; };
#include "vec_product.glsl"

void main() {
    weight_units = args.units;
    const uint entry = args.first_token * args.used + gl_WorkGroupID.y;
    if (entry >= step_rows * args.used) return;
    const uint expert = uint(ids[entry]) < args.experts ? uint(ids[entry]) : 0u;
    const uint step = gl_NumWorkGroups.x * gl_NumSubgroups;
    for (uint row = gl_WorkGroupID.x * gl_NumSubgroups + gl_SubgroupID; row < args.rows; row += step) {
        uint rows[1], x_rows[1];
        float gates[1], ups[1];
        rows[0] = expert * args.rows + row - args.first_flat;
        if (rows[0] >= args.flat_rows) continue;
        x_rows[0] = entry / args.used;
        gates[0] = ups[0] = 0.0;
        lane_products(0u, rows, x_rows, args.cols, gates);
        lane_products(1u, rows, x_rows, args.cols, ups);
        float gate = subgroupAdd(gates[0]), up = subgroupAdd(ups[0]);
        if (args.has_bias != 0u && subgroupElect()) {
            gate += gate_bias[rows[0] + args.first_flat];
            up += up_bias[rows[0] + args.first_flat];
        }
        if (subgroupElect()) y[entry * args.rows + row] = act_times(args.act, gate, up);
    }
}
