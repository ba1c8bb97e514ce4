// y = x times a normed Walsh-Hadamard matrix, of `width` elements. A work-group per group; y may be x.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { NormArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 1, std430) buffer Y { float y[]; };
#define STEP_BINDING 2
#include "step.glsl"
shared float sums[512];  // kMostHadamard

void main() {
    const uint groups = rows_in_step(args.rows_of) * args.groups;
    const float scale = 1.0 / sqrt(float(args.width));
    for (uint group = gl_WorkGroupID.x; group < groups; group += gl_NumWorkGroups.x) {
        const uint base = group * args.width;
        for (uint i = gl_LocalInvocationID.x; i < args.width; i += gl_WorkGroupSize.x) sums[i] = x[base + i];
        for (uint half_width = 1; half_width < args.width; half_width *= 2) {
            barrier();
            for (uint pair = gl_LocalInvocationID.x; pair < args.width / 2; pair += gl_WorkGroupSize.x) {
                const uint i = pair / half_width * 2 * half_width + pair % half_width;
                const float a = sums[i], b = sums[i + half_width];
                sums[i] = a + b;
                sums[i + half_width] = a - b;
            }
        }
        barrier();
        for (uint i = gl_LocalInvocationID.x; i < args.width; i += gl_WorkGroupSize.x) y[base + i] = sums[i] * scale;
        barrier();
    }
}
