// for each format
// y[t][r] = act(gate[r] . x[t]) * (up[r] . x[t]) for a few tokens; otherwise as linear_vec.
#define MATRICES 2
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint ROWS = 1;
layout(constant_id = 2) const uint TOKENS = 1;
layout(constant_id = 3) const bool NORMED = false;
const uint SUMS = ROWS * TOKENS;
layout(push_constant) uniform Push { LinearArgs args; };
#include "weights.glsl"
#include "act.glsl"
layout(set = 0, binding = 1, std430) readonly buffer X4 { vec4 x4[]; };
layout(set = 0, binding = 1, std430) readonly buffer X1 { float x1[]; };
layout(set = 0, binding = 2, std430) buffer Y { float y[]; };
#define STEP_BINDING 3
#include "step.glsl"
layout(set = 0, binding = 4, std430) readonly buffer Gain4 { vec4 gain4[]; };
layout(set = 0, binding = 4, std430) readonly buffer Gain1 { float gain1[]; };
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
        float gates[SUMS], ups[SUMS];
        [[unroll]] for (uint r = 0; r < ROWS; ++r) {
            rows[r] = min(first + r, args.rows - 1u);
            [[unroll]] for (uint t = 0; t < TOKENS; ++t) gates[r * TOKENS + t] = ups[r * TOKENS + t] = 0.0;
        }
        begin_norm();
        lane_products(0u, rows, x_rows, args.cols, gates);
        float norms[TOKENS];
        [[unroll]] for (uint t = 0; t < TOKENS; ++t) norms[t] = norm_of(t, args.cols, args.eps);
        lane_products(1u, rows, x_rows, args.cols, ups);
        [[unroll]] for (uint r = 0; r < ROWS; ++r)
            [[unroll]] for (uint t = 0; t < TOKENS; ++t) {
                const float gate = subgroupAdd(gates[r * TOKENS + t]) * norms[t];
                const float up = subgroupAdd(ups[r * TOKENS + t]) * norms[t];
                if (!subgroupElect() || first + r >= args.rows || first_token + t >= tokens) continue;
                y[x_rows[t] * args.stride + args.first_row + rows[r]] = act_times(args.act, gate, up);
            }
    }
}
