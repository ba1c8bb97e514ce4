// y[t] += the table's row at the token's position.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint STEP_KIND = RL_STEP_ALONE;
layout(push_constant) uniform Push { PositionArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer Table { float table[]; };
layout(set = 0, binding = 1, std430) buffer Y { float y[]; };
#define STEP_BINDING 2
#include "step.glsl"

void main() {
    const uint count = step_rows * args.width;
    for (uint i = gl_GlobalInvocationID.x; i < count; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
        const uint row = i / args.width;
        const uint position = STEP_KIND == RL_STEP_ALONE ? step_position + row : step_word(step_places + 2u * row);
        y[i] += table[min(position, args.last) * args.width + i % args.width];
    }
}
