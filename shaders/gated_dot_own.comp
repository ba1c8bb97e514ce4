// for each quantized format
// As gated_dot for one token; see linear_dot_own.
#define MATRICES 2
#include "types.glsl"
layout(local_size_x_id = 0) in;
const uint ROWS = 1, TOKENS = 1;
layout(constant_id = 2) const uint GROUP = 16;
layout(constant_id = 3) const bool TAKE = false;
layout(constant_id = 4) const uint COLS = 4096;
layout(constant_id = 5) const uint SUBGROUP = 32;
layout(constant_id = 6) const uint MOST_AHEAD = 4;
layout(constant_id = 7) const bool APART = false;
layout(push_constant) uniform Push { LinearArgs args; };
#include "dot.glsl"
#define SHARED_BOOK
#include "weights.glsl"
#include "act.glsl"
layout(set = 0, binding = 2, std430) buffer Y { float y[]; };
layout(set = 0, binding = 3, std430) readonly buffer Gain { vec4 gain4[]; };
#define HAND_BINDING 4
#define HAND_GAIN_BINDING 5
#define STEP_BINDING 6
#include "reduce.glsl"
#include "own_row.glsl"
#include "dot_product.glsl"
#include "own_product.glsl"

void main() {
    if (beyond_rows()) return;
    weight_units = args.units;
    share_book();
    const float scale = begin_row();
    uint turn = 0u;
    for (uint base = gl_WorkGroupID.x * GROUP; base < args.rows; base += gl_NumWorkGroups.x * GROUP, turn ^= 1u) {
        for (uint from = gl_SubgroupID; from < GROUP && base + from < args.rows; from += gl_NumSubgroups) {
            const uint rows[ROWS] = {base + from};
            const float gain = gain_of(args.first_row + rows[0]);
            float sums[SUMS];
            sums[0] = sums[1] = 0.0;
            own_products(rows, sums);
            const float gate = subgroupAdd(sums[0]) * scale, up = subgroupAdd(sums[1]) * scale;
            if (!subgroupElect()) continue;
            const float value = act_times(args.act, gate, up);
            y[TOKEN * args.stride + args.first_row + rows[0]] = value;
            keep_result(turn, from, value, gain);
        }
        leave_results(turn, args.first_row + base, args.first_row + args.rows);
    }
}
