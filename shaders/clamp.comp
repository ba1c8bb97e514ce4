// y = y, but at least `scale` and at most `softcap`. Comparisons let NaN through.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { ElementArgs args; };
layout(set = 0, binding = 0, std430) buffer Y { float y[]; };
#define STEP_BINDING 1
#include "step.glsl"

void main() {
    const uint count = rows_in_step(args.rows_of) * args.width;
    for (uint i = gl_GlobalInvocationID.x; i < count; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
        const float low = args.scale, high = args.softcap, x = y[i];
        y[i] = x < low ? low : x > high ? high : x;
    }
}
