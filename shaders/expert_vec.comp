// for each format
// Per token and chosen expert e: y[t][place][r] = w[e][r] . x + bias, or, weighted, y[t][r] += the sum over places of
// scale * (w[e][r] . x + bias). The buffer is a range of rows counted over all experts: rows of others are skipped.
// The grid's y is over (token, place), or over tokens when weighted.
#include "types.glsl"
layout(local_size_x_id = 0) in;
const uint ROWS = 1;
const uint TOKENS = 1;
const uint SUMS = ROWS * TOKENS;
layout(push_constant) uniform Push { ExpertArgs args; };
#include "weights.glsl"
layout(set = 0, binding = 1, std430) readonly buffer X4 { vec4 x4[]; };
layout(set = 0, binding = 1, std430) readonly buffer X1 { float x1[]; };
layout(set = 0, binding = 2, std430) buffer Y { float y[]; };
#define STEP_BINDING 3
#include "step.glsl"
layout(set = 0, binding = 4, std430) readonly buffer Ids { int ids[]; };
layout(set = 0, binding = 5, std430) readonly buffer Scales { float scales[]; };
layout(set = 0, binding = 6, std430) readonly buffer Bias { float bias[]; };
#include "vec_product.glsl"

float entry_product(uint entry, uint row) {
    // An id that is no expert (the router saw NaN) counts as expert 0, whose NaN scale carries the trouble on.
    const uint expert = uint(ids[entry]) < args.experts ? uint(ids[entry]) : 0u;
    const uint flat_row = expert * args.rows + row - args.first_flat;
    uint rows[1], x_rows[1];
    float sums[1];
    sums[0] = 0.0;
    rows[0] = flat_row;
    x_rows[0] = args.per_expert != 0u ? entry : entry / args.used;
    if (flat_row < args.flat_rows) lane_products(0u, rows, x_rows, args.cols, sums);
    const float sum = subgroupAdd(sums[0]);
    return args.has_bias != 0u ? sum + bias[expert * args.rows + row] : sum;
}

bool holds(uint entry, uint row) {
    const uint expert = uint(ids[entry]) < args.experts ? uint(ids[entry]) : 0u;
    return expert * args.rows + row - args.first_flat < args.flat_rows;
}

void main() {
    weight_units = args.units;
    const uint places = args.weighted != 0u ? 1u : args.used;
    const uint index = args.first_token * places + gl_WorkGroupID.y;
    if (index >= step_rows * places) return;
    const uint step = gl_NumWorkGroups.x * gl_NumSubgroups;
    for (uint row = gl_WorkGroupID.x * gl_NumSubgroups + gl_SubgroupID; row < args.rows; row += step) {
        if (args.weighted == 0u) {
            const float sum = entry_product(index, row);
            if (subgroupElect() && holds(index, row)) y[index * args.rows + row] = sum;
            continue;
        }
        float sum = 0.0;
        for (uint place = 0; place < args.used; ++place) {
            const uint entry = index * args.used + place;
            if (holds(entry, row)) sum += scales[entry] * entry_product(entry, row);
        }
        if (subgroupElect()) y[index * args.rows + row] += sum;
    }
}
