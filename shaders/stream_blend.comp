// Stream j of y = its weight * x + the sum over streams i of mix[i][j] * stream i of `from`.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { StreamBlendArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 1, std430) readonly buffer W { float w[]; };
layout(set = 0, binding = 2, std430) readonly buffer Mix { float mixed[]; };
layout(set = 0, binding = 3, std430) readonly buffer From { float from[]; };
layout(set = 0, binding = 4, std430) writeonly buffer Y { float y[]; };
#define STEP_BINDING 5
#include "step.glsl"

void main() {
    const uint n = args.streams, count = rows_in_step(args.of_outputs) * n * args.width;
    for (uint i = gl_GlobalInvocationID.x; i < count; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
        const uint stream = i / args.width, row = stream / n, j = stream % n, column = i % args.width;
        float sum = w[stream] * x[row * args.width + column];
        for (uint s = row * n; s < (row + 1u) * n; ++s) sum += mixed[s * n + j] * from[s * args.width + column];
        y[i] = sum;
    }
}
