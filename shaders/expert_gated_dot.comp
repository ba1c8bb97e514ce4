// for each quantized format
// As expert_gated_vec with activations in int8; see expert_dot.
#define MATRICES 2
#include "types.glsl"
layout(local_size_x_id = 0) in;
const uint ROWS = 1;
const uint TOKENS = 1;
const uint SUMS = 1;
const bool OWN = true;
layout(constant_id = 1) const uint COLS = 4096;
layout(push_constant) uniform Push { ExpertArgs args; };
#include "dot.glsl"
#include "weights.glsl"
#include "act.glsl"
layout(set = 0, binding = 1, std430) readonly buffer X4 { vec4 x4[]; };
layout(set = 0, binding = 1, std430) readonly buffer Prepared { uvec4 prepared[]; };
layout(set = 0, binding = 2, std430) buffer Y { float y[]; };
#define STEP_BINDING 3
#include "step.glsl"
layout(set = 0, binding = 4, std430) readonly buffer Ids { int ids[]; };
layout(set = 0, binding = 4, std430) readonly buffer Gain { vec4 gain4[]; };
#include "reduce.glsl"
#include "dot_activations.glsl"
#include "dot_product.glsl"

void main() {
    weight_units = args.units;
    const uint entry = gl_WorkGroupID.y;
    if (entry >= step_rows * args.used) return;
    prepare_own(entry / args.used * COLS, false, 0.0);
    const uint expert = uint(ids[entry]) < args.experts ? uint(ids[entry]) : 0u;
    const uint step = gl_NumWorkGroups.x * gl_NumSubgroups;
    for (uint row = gl_WorkGroupID.x * gl_NumSubgroups + gl_SubgroupID; row < args.rows; row += step) {
        uint rows[1];
        float gates[1], ups[1];
        rows[0] = expert * args.rows + row - args.first_flat;
        if (rows[0] >= args.flat_rows) continue;
        gates[0] = ups[0] = 0.0;
        lane_products(0u, rows, COLS, gates);
        lane_products(1u, rows, COLS, ups);
        const float gate = subgroupAdd(gates[0]), up = subgroupAdd(ups[0]);
        if (subgroupElect()) y[entry * args.rows + row] = apply_act(args.act, gate) * up;
    }
}
