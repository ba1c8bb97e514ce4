// y = x / sqrt(mean(x^2) + eps) * gain over `width` elements: the row, or a head. A work-group per group.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { NormArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 1, std430) buffer Y { float y[]; };
layout(set = 0, binding = 2, std430) readonly buffer Gain { float gain[]; };
#define STEP_BINDING 3
#include "step.glsl"
#include "reduce.glsl"

void main() {
    const uint groups = rows_in_step(args.rows_of) * args.groups;
    for (uint group = gl_WorkGroupID.x; group < groups; group += gl_NumWorkGroups.x) {
        const uint base = group * args.width;
        float squares = 0.0;
        for (uint i = gl_LocalInvocationID.x; i < args.width; i += gl_WorkGroupSize.x)
            squares += x[base + i] * x[base + i];
        const float scale = 1.0 / sqrt(group_sum(squares) / float(args.width) + args.eps);
        for (uint i = gl_LocalInvocationID.x; i < args.width; i += gl_WorkGroupSize.x)
            y[base + i] = x[base + i] * scale * (args.has_gain != 0u ? gain[i] : 1.0);
    }
}
