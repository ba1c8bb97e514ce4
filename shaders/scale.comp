// y = scale * y, then with a softcap c > 0: c * tanh(y / c).
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { ElementArgs args; };
layout(set = 0, binding = 0, std430) buffer Y { float y[]; };
#define STEP_BINDING 1
#include "step.glsl"

void main() {
    const uint count = rows_in_step(args.rows_of) * args.width;
    for (uint i = gl_GlobalInvocationID.x; i < count; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
        const float x = y[i] * args.scale;
        // tanh by exp: some drivers' own overflows for large arguments.
        const float e = exp(-2.0 * abs(x) / args.softcap), t = (1.0 - e) / (1.0 + e);
        y[i] = args.softcap > 0.0 ? args.softcap * (x < 0.0 ? -t : t) : x;
    }
}
