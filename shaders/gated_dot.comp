// for each quantized format
// As gated_vec with activations in int8; see linear_dot.
#define MATRICES 2
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint ROWS = 1;
layout(constant_id = 2) const uint TOKENS = 1;
layout(constant_id = 3) const uint COLS = 4096;
layout(constant_id = 4) const uint SUBGROUP = 32;
layout(push_constant) uniform Push { LinearArgs args; };
#include "dot.glsl"
#include "weights.glsl"
#include "act.glsl"
layout(set = 0, binding = 1, std430) readonly buffer Prepared { uvec4 prepared[]; };
layout(set = 0, binding = 2, std430) buffer Y { float y[]; };
#define STEP_BINDING 3
#include "step.glsl"
void put(uint r, uint t, float sums[2]) {
    y[t * args.stride + args.first_row + r] = act_times(args.act, sums[0], sums[1]);
}
#include "few_dots.glsl"

void main() {
    weight_units = args.units;
    few_products(rows_in_step(args.rows_of));
}
