// y[i] = scale * the product of stream i of a and of b. A work-group per stream.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { StreamArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer A { float a[]; };
layout(set = 0, binding = 1, std430) readonly buffer B { float b[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Y { float y[]; };
#define STEP_BINDING 3
#include "step.glsl"
#include "reduce.glsl"

void main() {
    const uint count = rows_in_step(args.of_outputs) * args.streams;
    for (uint stream = gl_WorkGroupID.x; stream < count; stream += gl_NumWorkGroups.x) {
        float sum = 0.0;
        for (uint i = gl_LocalInvocationID.x; i < args.width; i += gl_WorkGroupSize.x)
            sum += a[stream * args.width + i] * b[stream * args.width + i];
        const float product = group_sum(sum);
        if (gl_LocalInvocationID.x == 0u) y[stream] = args.scale * product;
    }
}
