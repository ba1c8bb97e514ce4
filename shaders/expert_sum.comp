// y[t][first + r] += the sum over places, in order, of scale * partials[t][place][r]. The grid's y is over tokens.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint USED = 8;
layout(push_constant) uniform Push { ExpertSumArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer Partials { float partials[]; };
layout(set = 0, binding = 1, std430) readonly buffer Scales { float scales[]; };
layout(set = 0, binding = 2, std430) buffer Y { float y[]; };
#define STEP_BINDING 3
#include "step.glsl"

void main() {
    const uint r = gl_GlobalInvocationID.x, t = gl_WorkGroupID.y;
    if (r >= args.rows || t >= step_rows) return;
    float sum = 0.0;
    [[unroll]] for (uint place = 0; place < USED; ++place) {
        const uint entry = t * USED + place;
        sum += scales[entry] * partials[entry * args.rows + r];
    }
    y[t * args.stride + args.first_row + r] += sum;
}
