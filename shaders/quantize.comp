// Rows of activations, normed where there is a gain, as int8 for dot kernels: per unit of 32 elements 48 bytes. A
// work-group per row.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { QuantizeArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Prepared { uvec4 prepared[]; };
layout(set = 0, binding = 2, std430) readonly buffer Gain { float gain[]; };
#define STEP_BINDING 3
#include "step.glsl"
#include "reduce.glsl"
uint first;
float scale = 1.0;
float value_of(uint i) {
    return args.has_norm != 0u ? x[first + i] * scale * gain[i] : x[first + i];
}
void put_unit(uint u, uvec4 low, uvec4 high, vec4 meta) {
    const uint at = (first / 32u + u) * 3u;
    prepared[at] = low;
    prepared[at + 1u] = high;
    prepared[at + 2u] = floatBitsToUint(meta);
}
#include "quantize.glsl"

void main() {
    if (gl_WorkGroupID.x >= rows_in_step(args.rows_of)) return;
    first = gl_WorkGroupID.x * args.width;
    if (args.has_norm != 0u) {
        float squares = 0.0;
        for (uint i = gl_LocalInvocationID.x; i < args.width; i += gl_WorkGroupSize.x)
            squares += x[first + i] * x[first + i];
        scale = 1.0 / sqrt(group_sum(squares) / float(args.width) + args.eps);
    }
    for (uint u = gl_LocalInvocationID.x; u < args.width / 32u; u += gl_WorkGroupSize.x) quantize_unit(u);
}
