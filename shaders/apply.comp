// y = function(y), as Function of plan/ops/rows.h has it. Comparisons let NaN through.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint FUNCTION = 0;
layout(push_constant) uniform Push { ElementArgs args; };
layout(set = 0, binding = 0, std430) buffer Y { float y[]; };
#define STEP_BINDING 1
#include "step.glsl"
#include "act.glsl"

float signed_root(float x) {
    const float size = abs(x);
    return sign(x) * sqrt(size < 1e-6 ? 1e-6 : size);
}

float applied(float x) {
    const float raised = x < 0.0 ? 0.0 : x;
    if (FUNCTION == 1) return raised * raised;
    if (FUNCTION == 3) return 1.0 / (1.0 + exp(-x));
    if (FUNCTION == 4) return signed_root(x);
    return act_times(FUNCTION == 0 ? 0u : 1u, x, 1.0);
}

void main() {
    const uint count = rows_in_step(args.rows_of) * args.width;
    for (uint i = gl_GlobalInvocationID.x; i < count; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
        y[i] = applied(y[i]);
    }
}
