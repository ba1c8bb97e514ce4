// for each quantized format
// As expert_gated_vec with activations in int8; see expert_dot.
#define MATRICES 2
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint COLS = 4096;
layout(constant_id = 2) const uint SUBGROUP = 32;
const uint UNITS = COLS / 32;
const uint TURNS = (UNITS + SUBGROUP - 1) / SUBGROUP;
const uint AHEAD = TURNS < 2 ? TURNS : 2;  // units of a lane, of each matrix, under way at once
layout(push_constant) uniform Push { ExpertArgs args; };
#include "dot.glsl"
#define SHARED_BOOK
#include "weights.glsl"
#include "act.glsl"
layout(set = 0, binding = 1, std430) readonly buffer X4 { vec4 x4[]; };
layout(set = 0, binding = 2, std430) buffer Y { float y[]; };
#define STEP_BINDING 3
#include "step.glsl"
layout(set = 0, binding = 4, std430) readonly buffer Ids { int ids[]; };
layout(set = 0, binding = 5, std430) readonly buffer GateBias { float gate_bias[]; };
layout(set = 0, binding = 6, std430) readonly buffer UpBias { float up_bias[]; };
layout(set = 0, binding = 7, std430) readonly buffer Gain { vec4 gain4[]; };
#include "reduce.glsl"
#include "own_activations.glsl"
#include "dot_product.glsl"

// Of this lane: gate and up.
vec2 lane_sums(uint flat_row) {
    vec2 sums = vec2(0.0);
    for (uint base = gl_SubgroupInvocationID; base < UNITS; base += AHEAD * SUBGROUP) {
        uint words[AHEAD * 2][8];
        vec4 s[AHEAD * 2];
        [[unroll]] for (uint a = 0; a < AHEAD; ++a) {
            const uint at = flat_row * UNITS + min(base + a * SUBGROUP, UNITS - 1u);
            unit_codes(0u, at, words[a * 2u]);
            unit_codes(1u, at, words[a * 2u + 1u]);
            s[a * 2u] = unit_scales(0u, at);
            s[a * 2u + 1u] = unit_scales(1u, at);
        }
        [[unroll]] for (uint a = 0; a < AHEAD; ++a) {
            const uint u = base + a * SUBGROUP;
            if (u >= UNITS) continue;
            sums.x += unit_product(words[a * 2u], s[a * 2u], x_low(0u, u), x_high(0u, u), x_meta(0u, u));
            sums.y += unit_product(words[a * 2u + 1u], s[a * 2u + 1u], x_low(0u, u), x_high(0u, u), x_meta(0u, u));
        }
    }
    return sums;
}

void main() {
    weight_units = args.units;
    share_book();
    const uint entry = args.first_token * args.used + gl_WorkGroupID.y;
    if (entry >= step_rows * args.used) return;
    prepare_own(entry / args.used * COLS, args.has_norm != 0u, args.eps);
    const uint expert = uint(ids[entry]) < args.experts ? uint(ids[entry]) : 0u;
    const uint step = gl_NumWorkGroups.x * gl_NumSubgroups;
    for (uint row = gl_WorkGroupID.x * gl_NumSubgroups + gl_SubgroupID; row < args.rows; row += step) {
        const uint flat_row = expert * args.rows + row - args.first_flat;
        if (flat_row >= args.flat_rows) continue;
        vec2 sums = subgroupAdd(lane_sums(flat_row));
        const uint bias = flat_row + args.first_flat;
        if (args.has_bias != 0u && subgroupElect()) sums += vec2(gate_bias[bias], up_bias[bias]);
        if (subgroupElect()) y[entry * args.rows + row] = act_times(args.act, sums.x, sums.y);
    }
}
