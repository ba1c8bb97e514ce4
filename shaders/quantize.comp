// Rows of activations, normed where there is a gain, as int8 for dot kernels: 16 elements share a scale. A row has
// three planes with 16 bytes for each unit of 32 elements, which a subgroup reads side by side: the codes of a unit's
// first half, of its second, and the scales of both with what each half sums up to. A work-group per row.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { QuantizeArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer X { vec4 x4[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Prepared { uvec4 prepared[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Numbers { float numbers[]; };
layout(set = 0, binding = 2, std430) readonly buffer Gain { vec4 gain4[]; };
#define STEP_BINDING 3
#include "step.glsl"
#include "reduce.glsl"

// Half h of the row's units, whose four elements i are from x4[first + i] on; `norm` is the norm's factor.
void quantize_half(uint h, uint first, float norm) {
    vec4 values[4];
    vec4 most = vec4(0.0), sums = vec4(0.0);
    [[unroll]] for (uint k = 0; k < 4; ++k) {
        values[k] = x4[first + h * 4u + k] * norm;
        if (args.has_norm != 0u) values[k] *= gain4[h * 4u + k];
        most = max(most, abs(values[k]));
        sums += values[k];
    }
    // A NaN or an infinity must not vanish in the codes: it goes on in the scale.
    const float sum = dot(sums, vec4(1.0));
    const float scale =
        isnan(sum) || isinf(sum) ? NOT_A_NUMBER : max(max(most.x, most.y), max(most.z, most.w)) / 127.0;
    const float inverse = scale > 0.0 ? 1.0 / scale : 0.0;
    uvec4 words;
    ivec4 total = ivec4(0);
    [[unroll]] for (uint k = 0; k < 4; ++k) {
        const ivec4 codes = clamp(ivec4(roundEven(values[k] * inverse)), -127, 127);
        total += codes;
        const uvec4 bytes = uvec4(codes & 255);
        words[k] = bytes.x | bytes.y << 8 | bytes.z << 16 | bytes.w << 24;
    }
    const uint units = args.width / 32u, row = gl_WorkGroupID.x * 3u * units, side = h & 1u;
    prepared[row + side * units + h / 2u] = words;
    const uint meta = (row + 2u * units + h / 2u) * 4u + side;
    numbers[meta] = scale;
    numbers[meta + 2u] = scale * float(total.x + total.y + total.z + total.w);
}

void main() {
    if (gl_WorkGroupID.x >= rows_in_step(args.rows_of)) return;
    const uint first = gl_WorkGroupID.x * (args.width / 4u);
    float norm = 1.0;
    if (args.has_norm != 0u) {
        float squares = 0.0;
        for (uint i = gl_LocalInvocationID.x; i < args.width / 4u; i += gl_WorkGroupSize.x)
            squares += dot(x4[first + i], x4[first + i]);
        norm = 1.0 / sqrt(group_sum(squares) / float(args.width) + args.eps);
    }
    for (uint h = gl_LocalInvocationID.x; h < args.width / 16u; h += gl_WorkGroupSize.x) quantize_half(h, first, norm);
}
