// y = x: the rows that the host gives with a step, or those that it reads after it.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { ElementArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { float y[]; };
#define STEP_BINDING 2
#include "step.glsl"

void main() {
    const uint count = rows_in_step(args.of_outputs) * args.width;
    for (uint i = gl_GlobalInvocationID.x; i < count; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) y[i] = x[i];
}
