// y[t][place] += bias[expert], or, weighted, y[t] += the sum over places of scale * bias[expert]. An id that is no
// expert counts as expert 0.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { ExpertBiasArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer Bias { float bias[]; };
layout(set = 0, binding = 1, std430) buffer Y { float y[]; };
#define STEP_BINDING 2
#include "step.glsl"
layout(set = 0, binding = 3, std430) readonly buffer Ids { int ids[]; };
layout(set = 0, binding = 4, std430) readonly buffer Scales { float scales[]; };

float bias_of(uint entry, uint column) {
    const uint expert = uint(ids[entry]) < args.experts ? uint(ids[entry]) : 0u;
    return bias[expert * args.width + column];
}

void main() {
    const uint count = step_rows * (args.weighted != 0u ? 1u : args.used) * args.width;
    for (uint i = gl_GlobalInvocationID.x; i < count; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
        const uint group = i / args.width, column = i % args.width;
        float sum = args.weighted != 0u ? 0.0 : bias_of(group, column);
        if (args.weighted != 0u)
            for (uint entry = group * args.used; entry < (group + 1u) * args.used; ++entry)
                sum += scales[entry] * bias_of(entry, column);
        y[i] += sum;
    }
}
