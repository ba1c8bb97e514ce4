// y = max(y - mean - deviations * standard deviation, 0), of a row. A work-group per row. The comparison lets
// NaN through.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { SparsifyArgs args; };
layout(set = 0, binding = 0, std430) buffer Y { float y[]; };
#define STEP_BINDING 1
#include "step.glsl"
#include "reduce.glsl"

void main() {
    const uint rows = rows_in_step(args.of_outputs);
    for (uint row = gl_WorkGroupID.x; row < rows; row += gl_NumWorkGroups.x) {
        const uint base = row * args.width;
        float sum = 0.0;
        for (uint i = gl_LocalInvocationID.x; i < args.width; i += gl_WorkGroupSize.x) sum += y[base + i];
        const float mean = group_sum(sum) / float(args.width);
        float squares = 0.0;
        for (uint i = gl_LocalInvocationID.x; i < args.width; i += gl_WorkGroupSize.x)
            squares += (y[base + i] - mean) * (y[base + i] - mean);
        const float least = mean + args.deviations * sqrt(group_sum(squares) / float(args.width));
        for (uint i = gl_LocalInvocationID.x; i < args.width; i += gl_WorkGroupSize.x)
            y[base + i] = y[base + i] < least ? 0.0 : y[base + i] - least;
    }
}
