// y = act(gate) * up; y may be one of them.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { ElementArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer Gate { float gate[]; };
layout(set = 0, binding = 1, std430) readonly buffer Up { float up[]; };
layout(set = 0, binding = 2, std430) buffer Y { float y[]; };
#define STEP_BINDING 3
#include "step.glsl"
#include "act.glsl"

void main() {
    const uint count = rows_in_step(args.rows_of) * args.width;
    for (uint i = gl_GlobalInvocationID.x; i < count; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x)
        y[i] = act_times(args.act, gate[i], up[i]);
}
