// y = scale * the sum over streams of weights * x. Weights are of elements, or with one_each of streams.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { StreamArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 1, std430) readonly buffer W { float w[]; };
layout(set = 0, binding = 2, std430) buffer Y { float y[]; };
#define STEP_BINDING 3
#include "step.glsl"

void main() {
    const uint count = rows_in_step(args.of_outputs) * args.width;
    for (uint i = gl_GlobalInvocationID.x; i < count; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
        const uint stream = i / args.width * args.streams, column = i % args.width;
        float sum = 0.0;
        for (uint s = stream; s < stream + args.streams; ++s)
            sum += x[s * args.width + column] * w[args.flag != 0u ? s : s * args.width + column];
        y[i] = args.scale * sum;
    }
}
