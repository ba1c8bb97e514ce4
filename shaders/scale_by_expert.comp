// The weight of each chosen expert times its factor. An id that is no expert counts as expert 0.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { ExpertFactorArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer Factor { float factor[]; };
layout(set = 0, binding = 1, std430) readonly buffer Ids { int ids[]; };
layout(set = 0, binding = 2, std430) buffer Scales { float scales[]; };
#define STEP_BINDING 3
#include "step.glsl"

void main() {
    const uint count = step_rows * args.used;
    for (uint i = gl_GlobalInvocationID.x; i < count; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x)
        scales[i] *= factor[uint(ids[i]) < args.experts ? uint(ids[i]) : 0u];
}
