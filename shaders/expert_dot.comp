// for each quantized format
// As expert_vec with activations in int8, quantized by each work-group itself. The grid's y is over (token,
// place), or over tokens when weighted: then the rows of PLACES experts are as one long row, and so are their
// activations.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint COLS = 4096;    // activations that a work-group prepares
layout(constant_id = 2) const uint PLACES = 1;     // multiplied at once
layout(constant_id = 3) const uint UNITS = 128;    // of a row
layout(constant_id = 4) const uint SUBGROUP = 32;
const uint ALL_UNITS = PLACES * UNITS;
const uint TURNS = (ALL_UNITS + SUBGROUP - 1) / SUBGROUP;
const uint AHEAD = TURNS < 4 ? TURNS : 4;  // units of a lane under way at once
layout(push_constant) uniform Push { ExpertArgs args; };
#include "dot.glsl"
#define SHARED_BOOK
#include "weights.glsl"
layout(set = 0, binding = 1, std430) readonly buffer X4 { vec4 x4[]; };
layout(set = 0, binding = 2, std430) buffer Y { float y[]; };
#define STEP_BINDING 3
#include "step.glsl"
layout(set = 0, binding = 4, std430) readonly buffer Ids { int ids[]; };
layout(set = 0, binding = 5, std430) readonly buffer Scales { float scales[]; };
layout(set = 0, binding = 5, std430) readonly buffer Gain { vec4 gain4[]; };
layout(set = 0, binding = 6, std430) readonly buffer Bias { float bias[]; };
#include "act.glsl"
#include "reduce.glsl"
#include "own_activations.glsl"
#include "dot_product.glsl"
shared uint first_rows[PLACES];  // of the experts, in this part
shared float factors[PLACES];

// Of this lane, for one row of each expert; those of other parts count nothing.
float lane_sum(uint row) {
    float sum = 0.0;
    for (uint base = gl_SubgroupInvocationID; base < ALL_UNITS; base += AHEAD * SUBGROUP) {
        uint words[AHEAD][8];
        vec4 s[AHEAD];
        [[unroll]] for (uint a = 0; a < AHEAD; ++a) {
            const uint i = min(base + a * SUBGROUP, ALL_UNITS - 1u);
            const uint at = min(first_rows[i / UNITS] + row, args.flat_rows - 1u) * UNITS + i % UNITS;
            unit_codes(0u, at, words[a]);
            s[a] = unit_scales(0u, at);
        }
        [[unroll]] for (uint a = 0; a < AHEAD; ++a) {
            const uint i = base + a * SUBGROUP, place = i / UNITS, u = COLS == UNITS * 32u ? i % UNITS : i;
            if (i < ALL_UNITS && first_rows[place] + row < args.flat_rows)
                sum += factors[place] * unit_product(words[a], s[a], x_low(0u, u), x_high(0u, u), x_meta(0u, u));
        }
    }
    return sum;
}

// The biases of one row of each expert; of those of other parts none.
float biases_of(uint row) {
    float sum = 0.0;
    [[unroll]] for (uint p = 0; p < PLACES; ++p)
        if (first_rows[p] + row < args.flat_rows) sum += factors[p] * bias[first_rows[p] + args.first_flat + row];
    return sum;
}

// y[row_out] (+)= what entries first .. first + PLACES - 1 give.
void add_entries(uint first, uint row_out) {
    barrier();  // those before have been read
    for (uint p = gl_LocalInvocationID.x; p < PLACES; p += gl_WorkGroupSize.x) {
        // An id that is no expert (the router saw NaN) counts as expert 0, whose NaN scale carries the trouble on.
        const uint expert = uint(ids[first + p]) < args.experts ? uint(ids[first + p]) : 0u;
        first_rows[p] = expert * args.rows - args.first_flat;
        factors[p] = args.weighted != 0u ? scales[first + p] : 1.0;
    }
    prepare_own((args.per_expert != 0u ? first : first / args.used) * UNITS * 32u, false, 0.0);
    const uint step = gl_NumWorkGroups.x * gl_NumSubgroups;
    for (uint row = gl_WorkGroupID.x * gl_NumSubgroups + gl_SubgroupID; row < args.rows; row += step) {
        if (args.weighted == 0u && first_rows[0] + row >= args.flat_rows) continue;
        float sum = subgroupAdd(lane_sum(row));
        if (!subgroupElect()) continue;
        if (args.has_bias != 0u) sum += biases_of(row);
        if (args.function != 0u) sum = applied(args.function - 1u, sum);
        const uint at = row_out * args.rows + row;
        y[at] = args.weighted != 0u ? y[at] + sum : sum;
    }
}

void main() {
    weight_units = args.units;
    share_book();
    const uint index = args.first_token * (args.weighted != 0u ? 1u : args.used) + gl_WorkGroupID.y;
    if (args.weighted == 0u) {
        if (index < step_rows * args.used) add_entries(index, index);
        return;
    }
    if (index >= step_rows) return;
    for (uint place = 0; place < args.used; place += PLACES) add_entries(index * args.used + place, index);
}
