// y = x less its mean over `width` elements: the row, or a head. A work-group per group; y may be x.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { NormArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 1, std430) buffer Y { float y[]; };
#define STEP_BINDING 2
#include "step.glsl"
#include "reduce.glsl"

void main() {
    const uint groups = rows_in_step(args.rows_of) * args.groups;
    for (uint group = gl_WorkGroupID.x; group < groups; group += gl_NumWorkGroups.x) {
        const uint base = group * args.width;
        float sum = 0.0;
        for (uint i = gl_LocalInvocationID.x; i < args.width; i += gl_WorkGroupSize.x) sum += x[base + i];
        const float mean = group_sum(sum) / float(args.width);
        for (uint i = gl_LocalInvocationID.x; i < args.width; i += gl_WorkGroupSize.x) y[base + i] = x[base + i] - mean;
    }
}
