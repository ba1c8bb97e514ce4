// y = function(y).
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint FUNCTION = 0;
layout(push_constant) uniform Push { ElementArgs args; };
layout(set = 0, binding = 0, std430) buffer Y { float y[]; };
#define STEP_BINDING 1
#include "step.glsl"
#include "act.glsl"

void main() {
    const uint count = rows_in_step(args.rows_of) * args.width;
    for (uint i = gl_GlobalInvocationID.x; i < count; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
        y[i] = applied(FUNCTION, y[i]);
    }
}
