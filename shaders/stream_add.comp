// Each stream of y += scale * (its weight + offset) * x; with `flag` it is not read.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { StreamArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 1, std430) readonly buffer W { float w[]; };
layout(set = 0, binding = 2, std430) buffer Y { float y[]; };
#define STEP_BINDING 3
#include "step.glsl"

void main() {
    const uint count = rows_in_step(args.of_outputs) * args.streams * args.width;
    for (uint i = gl_GlobalInvocationID.x; i < count; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
        const uint stream = i / args.width;
        if (stream % args.streams < args.first) continue;
        const float weight = args.scale * ((args.has_weights != 0u ? w[stream] : 0.0) + args.offset);
        const float added = weight * x[stream / args.streams * args.width + i % args.width];
        y[i] = args.flag != 0u ? added : y[i] + added;
    }
}
