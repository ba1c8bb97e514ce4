// Rows of activations, normed where there is a gain, as halfs for matrix units, each row times a power of two that
// keeps it in range; `scales` gets its inverse. A work-group per row.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { HalvesArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Halves { uint halves[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Scales { float scales[]; };
layout(set = 0, binding = 3, std430) readonly buffer Gain { float gain[]; };
#define STEP_BINDING 4
#include "step.glsl"
#include "reduce.glsl"

void main() {
    if (gl_WorkGroupID.x >= rows_in_step(args.rows_of)) return;
    const uint first = gl_WorkGroupID.x * args.width;
    float norm = 1.0, squares = 0.0, most = 0.0;
    for (uint i = gl_LocalInvocationID.x; i < args.width; i += gl_WorkGroupSize.x) {
        const float v = x[first + i];
        squares += v * v;
        most = max(most, abs(args.has_norm != 0u ? v * gain[i] : v));
    }
    if (args.has_norm != 0u) norm = 1.0 / sqrt(group_sum(squares) / float(args.width) + args.eps);
    most = group_max(most) * norm;
    // Halfs end at 65504: the largest goes to about 2^9, so that sums of small ones keep their bits as well.
    const uint exponent = clamp((floatBitsToUint(most) >> 23) & 255u, 40u, 215u);
    const float up = uintBitsToFloat((254u + 9u - exponent) << 23), down = uintBitsToFloat((exponent - 9u) << 23);
    for (uint i = gl_LocalInvocationID.x * 2u; i < args.width; i += gl_WorkGroupSize.x * 2u) {
        vec2 v = vec2(x[first + i], x[first + i + 1u]) * norm * up;
        if (args.has_norm != 0u) v *= vec2(gain[i], gain[i + 1u]);
        halves[(first + i) / 2u] = packHalf2x16(v);
    }
    if (gl_LocalInvocationID.x == 0u) scales[gl_WorkGroupID.x] = down;
}
