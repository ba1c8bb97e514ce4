// for each quantized format
// y[r] (+)= w[r] . x + bias[r], or a function of it, for one token (with APART each of the grid's y), whose activations
// each work-group norms and quantizes to int8 by itself, or with TAKE takes as the dispatch before left them: that saves a
// dispatch. Results can be left as int8 for the next one. See own_row.glsl. Needs COLS % 32 == 0.
// Grid: x strides over groups of GROUP rows; in a group each subgroup has ROWS rows at a time. Shared memory: the row of
// activations (48 bytes for 32 columns), two groups of results, and the format's code book. Sums as in linear_dot.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint ROWS = 1;
const uint TOKENS = 1;
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
layout(set = 0, binding = 2, std430) buffer Y { float y[]; };
layout(set = 0, binding = 3, std430) readonly buffer Gain { vec4 gain4[]; };
#define HAND_BINDING 4
#define HAND_GAIN_BINDING 5
#define STEP_BINDING 7
layout(set = 0, binding = 6, std430) readonly buffer Bias { float bias[]; };
#include "act.glsl"
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
        for (uint from = gl_SubgroupID * ROWS; from < GROUP && base + from < args.rows; from += gl_NumSubgroups * ROWS) {
            uint rows[ROWS];
            float sums[SUMS], before[ROWS], gains[ROWS];
            [[unroll]] for (uint r = 0; r < ROWS; ++r) {
                rows[r] = min(base + from + r, args.rows - 1u);
                sums[r] = 0.0;
                const uint row = args.first_row + rows[r];
                before[r] = (args.accumulate != 0u ? y[TOKEN * args.stride + row] : 0.0) + (args.has_bias != 0u ? bias[row] : 0.0);
                gains[r] = gain_of(row);
            }
            own_products(rows, sums);
            [[unroll]] for (uint r = 0; r < ROWS; ++r) {
                float value = subgroupAdd(sums[r]) * scale + before[r];
                if (args.function != 0u) value = applied(args.function - 1u, value);
                if (!subgroupElect() || base + from + r >= args.rows) continue;
                y[TOKEN * args.stride + args.first_row + rows[r]] = value;
                keep_result(turn, from + r, value, gains[r]);
            }
        }
        leave_results(turn, args.first_row + base, args.first_row + args.rows);
    }
}
