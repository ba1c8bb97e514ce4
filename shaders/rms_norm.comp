// y = factor * x / sqrt(mean(x^2) + eps) * gain over `width` elements: the row, or a head; with a gate times act(gate).
// Or it is added to y.
// A work-group per group.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool GATED = false;
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

float scale_of(float squares) { return args.factor / sqrt(group_sum(squares) / float(args.width) + args.eps); }

void norm_fours(uint base) {
    const uint fours = args.width / 4u;
    float squares = 0.0;
    for (uint i = gl_LocalInvocationID.x; i < fours; i += gl_WorkGroupSize.x) squares += dot(x4[base + i], x4[base + i]);
    const float scale = scale_of(squares);
    for (uint i = gl_LocalInvocationID.x; i < fours; i += gl_WorkGroupSize.x) {
        const vec4 normed = x4[base + i] * scale * (args.has_gain != 0u ? gain4[i] : vec4(1.0));
        if (GATED)
            y4[base + i] = gated(gate4[base + i], normed);
        else
            y4[base + i] = ADDS ? y4[base + i] + normed : normed;
    }
}

void norm_singles(uint base) {
    float squares = 0.0;
    for (uint i = gl_LocalInvocationID.x; i < args.width; i += gl_WorkGroupSize.x) squares += x[base + i] * x[base + i];
    const float scale = scale_of(squares);
    for (uint i = gl_LocalInvocationID.x; i < args.width; i += gl_WorkGroupSize.x) {
        const float normed = x[base + i] * scale * (args.has_gain != 0u ? gain[i] : 1.0);
        if (GATED)
            y[base + i] = gated(gate[base + i], normed);
        else
            y[base + i] = ADDS ? y[base + i] + normed : normed;
    }
}

void main() {
    const uint groups = rows_in_step(args.rows_of) * args.groups;
    for (uint group = gl_WorkGroupID.x; group < groups; group += gl_NumWorkGroups.x) {
        if (args.width % 4u == 0u)
            norm_fours(group * (args.width / 4u));
        else
            norm_singles(group * args.width);
    }
}
