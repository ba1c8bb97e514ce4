// for each quantized format
// As linear_dot_own for the weighted sum of the experts that one token goes to: their rows are as one long row, and so are the
// activations, of which each has its own. What an expert beside them gives is added, where it has been made.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint PLACES = 1;
layout(constant_id = 2) const uint GROUP = 16;
layout(constant_id = 3) const bool TAKE = false;
layout(constant_id = 4) const uint COLS = 4096;  // of all places
layout(constant_id = 5) const uint SUBGROUP = 32;
layout(constant_id = 6) const uint MOST_AHEAD = 4;
layout(constant_id = 7) const uint EXPERT_ROWS = 16;  // results
layout(constant_id = 8) const uint BESIDE = 0;        // 1: an expert beside them, 2: and what it counts
layout(constant_id = 9) const bool APART = false;
const uint UNITS = COLS / 32, PLACE_UNITS = UNITS / PLACES;
const uint TURNS = (UNITS + SUBGROUP - 1) / SUBGROUP, LOADS = (TURNS + MOST_AHEAD - 1) / MOST_AHEAD;
const uint AHEAD = (TURNS + LOADS - 1) / LOADS;
const bool WHOLE = LOADS * AHEAD * SUBGROUP == UNITS;
layout(push_constant) uniform Push { ExpertRowArgs args; };
#include "dot.glsl"
#define SHARED_BOOK
#include "weights.glsl"
layout(set = 0, binding = 2, std430) buffer Y { float y[]; };
layout(set = 0, binding = 3, std430) readonly buffer Gain { vec4 gain4[]; };
#define HAND_BINDING 4
#define HAND_GAIN_BINDING 5
#define STEP_BINDING 11
layout(set = 0, binding = 6, std430) readonly buffer Ids { int ids[]; };
layout(set = 0, binding = 7, std430) readonly buffer Bias { float bias[]; };
layout(set = 0, binding = 8, std430) readonly buffer Scales { float scales[]; };
layout(set = 0, binding = 9, std430) readonly buffer Beside { float beside[]; };
layout(set = 0, binding = 10, std430) readonly buffer BesideScale { float beside_scale[]; };
#define WEIGHTED
#include "reduce.glsl"
#include "own_row.glsl"
#include "dot_product.glsl"
#include "chosen_experts.glsl"

// Of this lane, for one row of each expert: units are read without branches between before one is multiplied.
float lane_sum(uint row) {
    float sum = 0.0;
    uint first = gl_SubgroupInvocationID;
    [[dont_unroll]] for (uint t = 0; t < LOADS; ++t, first += AHEAD * SUBGROUP) {
        uint words[AHEAD][8];
        vec4 s[AHEAD];
        [[unroll]] for (uint a = 0; a < AHEAD; ++a) {
            const uint u = WHOLE ? first + a * SUBGROUP : min(first + a * SUBGROUP, UNITS - 1u);
            const uint at = (first_rows[u / PLACE_UNITS] + row) * PLACE_UNITS + u % PLACE_UNITS;
            unit_codes(0u, at, words[a]);
            s[a] = unit_scales(0u, at);
        }
        [[unroll]] for (uint a = 0; a < AHEAD; ++a) {
            const uint u = first + a * SUBGROUP;
            if (WHOLE || u < UNITS)
                sum += factors[u / PLACE_UNITS] * unit_product(words[a], s[a], x_low(0u, u), x_high(0u, u), x_meta(0u, u));
        }
    }
    return sum;
}

// Likewise of the biases.
float lane_bias(uint row) {
    float sum = 0.0;
    if (args.has_bias != 0u)
        for (uint p = gl_SubgroupInvocationID; p < PLACES; p += SUBGROUP) sum += factors[p] * bias[first_rows[p] + row];
    return sum;
}

// What a row's sum is added to.
float before_of(uint row) {
    const uint at = TOKEN * EXPERT_ROWS + row;
    float before = y[at];
    if (BESIDE == 1u) before += beside[at];
    if (BESIDE == 2u) before += beside_scale[TOKEN] * beside[at];
    return before;
}

void main() {
    if (beyond_rows()) return;
    weight_units = args.units;
    share_book();
    read_chosen();
    begin_row();
    uint turn = 0u;
    for (uint base = gl_WorkGroupID.x * GROUP; base < EXPERT_ROWS; base += gl_NumWorkGroups.x * GROUP, turn ^= 1u) {
        for (uint from = gl_SubgroupID; from < GROUP && base + from < EXPERT_ROWS; from += gl_NumSubgroups) {
            const uint row = base + from;
            const float before = before_of(row), gain = gain_of(row), biases = lane_bias(row);
            const float value = before + subgroupAdd(lane_sum(row) + biases);
            if (!subgroupElect()) continue;
            y[TOKEN * EXPERT_ROWS + row] = value;
            keep_result(turn, from, value, gain);
        }
        leave_results(turn, base, EXPERT_ROWS);
    }
}
