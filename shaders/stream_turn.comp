// Stream i of y = that of x + the sum over j of weight i * streams + j * stream j of x.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { StreamArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 1, std430) readonly buffer W { float w[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Y { float y[]; };
#define STEP_BINDING 3
#include "step.glsl"

void main() {
    const uint count = rows_in_step(args.of_outputs) * args.streams * args.width;
    for (uint i = gl_GlobalInvocationID.x; i < count; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
        const uint stream = i / args.width, first = stream - stream % args.streams;
        float sum = x[i];
        for (uint s = 0; s < args.streams; ++s)
            sum += w[stream * args.streams + s] * x[(first + s) * args.width + i % args.width];
        y[i] = sum;
    }
}
