// y = the rows of x whose output is wanted.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { ElementArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { float y[]; };
#define STEP_BINDING 2
#include "step.glsl"

void main() {
    const uint count = step_outputs * args.width, from = step_first_output * args.width;
    for (uint i = gl_GlobalInvocationID.x; i < count; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
        uint at = from + i;
        if (step_output_rows > 0u) at = step_word(step_output_rows + i / args.width) * args.width + i % args.width;
        y[i] = x[at];
    }
}
