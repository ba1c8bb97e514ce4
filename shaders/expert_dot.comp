// for each quantized format
// As expert_vec with activations in int8, quantized by each work-group itself. The grid's y is over (token,
// place), or over tokens when weighted.
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
layout(set = 0, binding = 1, std430) readonly buffer X4 { vec4 x4[]; };
layout(set = 0, binding = 1, std430) readonly buffer Prepared { uvec4 prepared[]; };
layout(set = 0, binding = 2, std430) buffer Y { float y[]; };
#define STEP_BINDING 3
#include "step.glsl"
layout(set = 0, binding = 4, std430) readonly buffer Ids { int ids[]; };
layout(set = 0, binding = 5, std430) readonly buffer Scales { float scales[]; };
layout(set = 0, binding = 5, std430) readonly buffer Gain { vec4 gain4[]; };
#include "reduce.glsl"
#include "dot_activations.glsl"
#include "dot_product.glsl"

void add_entry(uint entry, uint row_out) {
    prepare_own((args.per_expert != 0u ? entry : entry / args.used) * COLS, false, 0.0);
    // An id that is no expert (the router saw NaN) counts as expert 0, whose NaN scale carries the trouble on.
    const uint expert = uint(ids[entry]) < args.experts ? uint(ids[entry]) : 0u;
    const uint step = gl_NumWorkGroups.x * gl_NumSubgroups;
    for (uint row = gl_WorkGroupID.x * gl_NumSubgroups + gl_SubgroupID; row < args.rows; row += step) {
        uint rows[1];
        float sums[1];
        sums[0] = 0.0;
        rows[0] = expert * args.rows + row - args.first_flat;
        if (rows[0] >= args.flat_rows) continue;
        lane_products(0u, rows, COLS, sums);
        const float sum = subgroupAdd(sums[0]);
        if (!subgroupElect()) continue;
        const uint at = row_out * args.rows + row;
        y[at] = args.weighted != 0u ? y[at] + scales[entry] * sum : sum;
    }
}

void main() {
    weight_units = args.units;
    const uint index = gl_WorkGroupID.y;
    if (args.weighted == 0u) {
        if (index < step_rows * args.used) add_entry(index, index);
        return;
    }
    if (index >= step_rows) return;
    for (uint place = 0; place < args.used; ++place) add_entry(index * args.used + place, index);
}
