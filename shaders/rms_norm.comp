// y = factor * x / sqrt(mean(x^2) + eps) * gain over `width` elements: the row, or a head; with a gate times act(gate), or
// of act(gate) * x in place of x. Or it is added to y.
// Grid: x strides over groups, one for a work-group at a time. Shared memory: a float for each subgroup. Squares are summed
// in f32: an invocation's fours (single elements where width % 4 != 0) in order, then a subgroup's, then the subgroups'.
// A group that fits HELD fours for each invocation is read once, with everything on its way before any of it is used: a
// single row is waited for. Wider ones are read again for the result.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint GATED = 0;
const uint GATED_X = 1, GATED_Y = 2;
layout(constant_id = 2) const bool ADDS = false;
layout(push_constant) uniform Push { NormArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 0, std430) readonly buffer X4 { vec4 x4[]; };
layout(set = 0, binding = 1, std430) buffer Y { float y[]; };
layout(set = 0, binding = 1, std430) buffer Y4 { vec4 y4[]; };
layout(set = 0, binding = 2, std430) readonly buffer Gain { float gain[]; };
layout(set = 0, binding = 2, std430) readonly buffer Gain4 { vec4 gain4[]; };
layout(set = 0, binding = 3, std430) readonly buffer Gate { float gate[]; };
layout(set = 0, binding = 3, std430) readonly buffer Gate4 { vec4 gate4[]; };
#define STEP_BINDING 4
#include "step.glsl"
#include "act.glsl"
#include "reduce.glsl"

float gated(float x, float y) { return act_times(args.act, x, y); }
vec4 gated(vec4 x, vec4 y) {
    return vec4(gated(x.x, y.x), gated(x.y, y.y), gated(x.z, y.z), gated(x.w, y.w));
}

float input_at(uint i) { return GATED == GATED_X ? gated(gate[i], x[i]) : x[i]; }
vec4 inputs_at(uint i) { return GATED == GATED_X ? gated(gate4[i], x4[i]) : x4[i]; }

float scale_of(float squares) { return args.factor / sqrt(group_sum(squares) / float(args.width) + args.eps); }

vec4 gains_at(uint i) { return args.gains != 0u ? gain4[i] : vec4(1.0); }

const uint HELD = 2;  // fours of an invocation

// All that an invocation has of the group is on its way before any of it is used.
void norm_held(uint base, uint gains) {
    const uint fours = args.width / 4u, own = gl_LocalInvocationID.x;
    vec4 held[HELD], own_gains[HELD], others[HELD];  // of y, or the gate
    [[unroll]] for (uint n = 0; n < HELD; ++n) {
        const uint i = min(own + n * gl_WorkGroupSize.x, fours - 1u);
        held[n] = inputs_at(base + i);
        own_gains[n] = gains_at(gains / 4u + i);
        if (ADDS) others[n] = y4[base + i];
        if (GATED == GATED_Y) others[n] = gate4[base + i];
    }
    float squares = 0.0;
    [[unroll]] for (uint n = 0; n < HELD; ++n)
        if (own + n * gl_WorkGroupSize.x < fours) squares += dot(held[n], held[n]);
    const float scale = scale_of(squares);
    [[unroll]] for (uint n = 0; n < HELD; ++n) {
        const uint i = own + n * gl_WorkGroupSize.x;
        const vec4 normed = held[n] * scale * own_gains[n];
        if (i < fours) y4[base + i] = GATED == GATED_Y ? gated(others[n], normed) : ADDS ? others[n] + normed : normed;
    }
}

void norm_fours(uint base, uint gains) {
    const uint fours = args.width / 4u;
    float squares = 0.0;
    for (uint i = gl_LocalInvocationID.x; i < fours; i += gl_WorkGroupSize.x) {
        const vec4 four = inputs_at(base + i);
        squares += dot(four, four);
    }
    const float scale = scale_of(squares);
    for (uint i = gl_LocalInvocationID.x; i < fours; i += gl_WorkGroupSize.x) {
        const vec4 normed = inputs_at(base + i) * scale * gains_at(gains / 4u + i);
        if (GATED == GATED_Y)
            y4[base + i] = gated(gate4[base + i], normed);
        else
            y4[base + i] = ADDS ? y4[base + i] + normed : normed;
    }
}

void norm_singles(uint base, uint gains) {
    float squares = 0.0;
    for (uint i = gl_LocalInvocationID.x; i < args.width; i += gl_WorkGroupSize.x)
        squares += input_at(base + i) * input_at(base + i);
    const float scale = scale_of(squares);
    for (uint i = gl_LocalInvocationID.x; i < args.width; i += gl_WorkGroupSize.x) {
        const float normed = input_at(base + i) * scale * (args.gains != 0u ? gain[gains + i] : 1.0);
        if (GATED == GATED_Y)
            y[base + i] = gated(gate[base + i], normed);
        else
            y[base + i] = ADDS ? y[base + i] + normed : normed;
    }
}

void main() {
    const uint groups = rows_in_step(args.rows_of) * args.groups;
    for (uint group = gl_WorkGroupID.x; group < groups; group += gl_NumWorkGroups.x) {
        const uint gains = args.gains > 1u ? group % args.gains * args.width : 0u;  // where the group's begin
        if (args.width % 4u == 0u && args.width / 4u <= HELD * gl_WorkGroupSize.x)
            norm_held(group * (args.width / 4u), gains);
        else if (args.width % 4u == 0u)
            norm_fours(group * (args.width / 4u), gains);
        else
            norm_singles(group * args.width, gains);
    }
}
