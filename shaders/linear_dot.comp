// for each quantized format
// y[t][r] (+)= w[r] . x[t] + bias[r] for a few tokens, with activations in int8 that quantize.comp prepared: 16 share a
// scale. Needs COLS, the columns, to be a multiple of 32.
// Grid: x strides over groups of ROWS rows, of which a subgroup has one at a time; y is over groups of TOKENS tokens.
// Products of codes are summed in integers, exactly, for 16 columns; these sums are scaled and added in f32: within a lane
// by units of 32 columns in order, lanes stride over units, and subgroupAdd() adds the lanes. No shared memory.
// ROWS rows share each load of the activations, and TOKENS tokens each load of a weight.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint ROWS = 2;
layout(constant_id = 2) const uint TOKENS = 1;
layout(constant_id = 3) const uint COLS = 4096;
layout(constant_id = 4) const uint SUBGROUP = 32;
layout(push_constant) uniform Push { LinearArgs args; };
#include "dot.glsl"
#include "weights.glsl"
layout(set = 0, binding = 1, std430) readonly buffer Prepared { uvec4 prepared[]; };
layout(set = 0, binding = 2, std430) buffer Y { float y[]; };
#define STEP_BINDING 3
#include "step.glsl"
layout(set = 0, binding = 4, std430) readonly buffer Bias { float bias[]; };
void put(uint r, uint t, float sums[1]) {
    const uint row = args.first_row + r, at = t * args.stride + row;
    float sum = sums[0];
    if (args.has_bias != 0u) sum += bias[row];
    y[at] = args.accumulate != 0u ? y[at] + sum : sum;
}
#include "few_dots.glsl"

void main() {
    weight_units = args.units;
    few_products(rows_in_step(args.rows_of));
}
