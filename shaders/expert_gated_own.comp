// for each quantized format
// As gated_dot_own for the experts that one token goes to, whose results are counted on from place to place. Where the router has
// left its logits alone each work-group makes the choice by them, which one of them leaves for others.
#define MATRICES 2
#include "types.glsl"
layout(local_size_x_id = 0) in;
const uint ROWS = 1;
layout(constant_id = 1) const uint PLACES = 1;
layout(constant_id = 2) const uint GROUP = 16;
layout(constant_id = 3) const bool TAKE = false;
layout(constant_id = 4) const uint COLS = 4096;
layout(constant_id = 5) const uint SUBGROUP = 32;
layout(constant_id = 6) const uint MOST_AHEAD = 2;
layout(constant_id = 7) const uint EXPERT_ROWS = 16;  // results of a place
layout(constant_id = 8) const bool CHOOSES = false;
layout(constant_id = 9) const uint EXPERTS = 1;  // from here on as in route.comp
layout(constant_id = 10) const uint GROUPS = 1;
layout(constant_id = 11) const uint GROUPS_USED = 1;
layout(constant_id = 12) const bool BY_TWO = false;
layout(constant_id = 13) const uint GATING = 0;
layout(constant_id = 14) const uint BIAS_OF = 0;
layout(constant_id = 15) const bool APART = false;
const uint TOKENS = 1, USED = PLACES;
const uint RESULTS = PLACES * EXPERT_ROWS;
layout(push_constant) uniform Push { ExpertRowArgs args; };
#include "dot.glsl"
#define SHARED_BOOK
#include "weights.glsl"
#include "act.glsl"
layout(set = 0, binding = 2, std430) writeonly buffer Y { float y[]; };
layout(set = 0, binding = 3, std430) readonly buffer Gain { vec4 gain4[]; };
#define HAND_BINDING 4
#define HAND_GAIN_BINDING 5
#define STEP_BINDING 12
layout(set = 0, binding = 6, std430) buffer Ids { int ids[]; };
layout(set = 0, binding = 7, std430) readonly buffer GateBias { float gate_bias[]; };
layout(set = 0, binding = 8, std430) readonly buffer UpBias { float up_bias[]; };
layout(set = 0, binding = 9, std430) readonly buffer Logits { float logits[]; };
layout(set = 0, binding = 10, std430) writeonly buffer Scales { float scales[]; };
layout(set = 0, binding = 11, std430) readonly buffer RouteBias { float route_bias[]; };
#include "reduce.glsl"
#include "own_row.glsl"
#include "dot_product.glsl"
#include "own_product.glsl"
#include "chosen_experts.glsl"
#include "softplus.glsl"
// The last work-group has the fewest results to make.
bool leaves_choice() { return gl_WorkGroupID.x == gl_NumWorkGroups.x - 1u; }
#define CHOOSER 0u
void keep_choice(uint row, uint place, uint expert) {
    first_rows[place] = expert * EXPERT_ROWS;
    if (leaves_choice()) ids[row * PLACES + place] = int(expert);
}
#include "route.glsl"

void main() {
    if (beyond_rows()) return;
    weight_units = args.units;
    share_book();
    // By the last subgroup, while the first ones take the row.
    const bool chooser = CHOOSES && gl_SubgroupID == gl_NumSubgroups - 1u;
    if (!CHOOSES)
        read_chosen();
    else if (chooser)
        choose(TOKEN);
    const float scale = begin_row();
    uint turn = 0u;
    for (uint base = gl_WorkGroupID.x * GROUP; base < RESULTS; base += gl_NumWorkGroups.x * GROUP, turn ^= 1u) {
        for (uint from = gl_SubgroupID; from < GROUP && base + from < RESULTS; from += gl_NumSubgroups) {
            const uint result = base + from;
            const uint rows[ROWS] = {first_rows[result / EXPERT_ROWS] + result % EXPERT_ROWS};
            const float gain = gain_of(result);
            const vec2 biases = args.has_bias != 0u ? vec2(gate_bias[rows[0]], up_bias[rows[0]]) : vec2(0.0);
            float sums[SUMS];
            sums[0] = sums[1] = 0.0;
            own_products(rows, sums);
            const float gate = subgroupAdd(sums[0]) * scale + biases.x, up = subgroupAdd(sums[1]) * scale + biases.y;
            if (!subgroupElect()) continue;
            const float value = act_times(args.act, gate, up);
            y[TOKEN * RESULTS + result] = value;
            keep_result(turn, from, value, gain);
        }
        leave_results(turn, base, RESULTS);
    }
    if (chooser && leaves_choice() && subgroupElect()) weigh(TOKEN);
}
