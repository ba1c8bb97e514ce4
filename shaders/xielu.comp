// As Xielu of plan/ops/rows.h has it; e^x - 1 - x near 0 by its series, which loses nothing there.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { XieluArgs args; };
layout(set = 0, binding = 0, std430) buffer Y { float values[]; };
#define STEP_BINDING 1
#include "step.glsl"

void main() {
    const uint count = rows_in_step(args.rows_of) * args.width;
    for (uint i = gl_GlobalInvocationID.x; i < count; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
        const float y = values[i], x = y < args.limit ? y : args.limit;
        const float inner = 1.0 / 120.0 + x * (1.0 / 720.0 + x * (1.0 / 5040.0));
        const float series = x * x * (0.5 + x * (1.0 / 6.0 + x * (1.0 / 24.0 + x * inner)));
        const float tail = x < -0.25 ? exp(x) - 1.0 - x : series;
        const float bent = y > 0.0 ? args.positive * y * y : args.negative * (tail + (x - y));
        values[i] = bent + args.linear * y;
    }
}
