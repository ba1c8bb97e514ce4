// Rows of activations, normed where there is a gain, as int8 for matrix units: 32 elements share a scale. `codes` gets them in
// order, `units` of each 32 the scale and, in 16 bits each, the sums of the codes of both halves. A row of several pieces
// counts as so many rows. A work-group per row, in which an invocation has 32 elements at a time.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { HalvesArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer X { vec4 x4[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Codes { uvec4 codes[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Units { uvec2 units[]; };
layout(set = 0, binding = 3, std430) readonly buffer Gain { vec4 gain4[]; };
#define STEP_BINDING 4
#include "step.glsl"
#include "reduce.glsl"

uvec4 to_codes(vec4 values[8], uint first, float inverse, out int total) {
    uvec4 words;
    ivec4 sums = ivec4(0);
    [[unroll]] for (uint k = 0; k < 4; ++k) {
        const ivec4 four = clamp(ivec4(roundEven(values[first + k] * inverse)), -127, 127);
        const uvec4 bytes = uvec4(four & 255);
        sums += four;
        words[k] = bytes.x | bytes.y << 8 | bytes.z << 16 | bytes.w << 24;
    }
    total = sums.x + sums.y + sums.z + sums.w;
    return words;
}

// Unit u of the row whose units begin with first_unit; `norm` is the norm's factor.
void quantize_unit(uint first_unit, uint u, float norm) {
    vec4 values[8];
    vec4 most = vec4(0.0), sums = vec4(0.0);
    [[unroll]] for (uint k = 0; k < 8; ++k) {
        values[k] = x4[(first_unit + u) * 8u + k] * norm;
        if (args.has_norm != 0u) values[k] *= gain4[u * 8u + k];
        most = max(most, abs(values[k]));
        sums += values[k];
    }
    // A NaN or an infinity must not vanish in the codes: it goes on in the scale.
    const float sum = dot(sums, vec4(1.0));
    const float largest = max(max(most.x, most.y), max(most.z, most.w));
    const float scale = isnan(sum) || isinf(sum) ? NOT_A_NUMBER : largest / 127.0;
    const float inverse = scale > 1.2e-38 ? 1.0 / scale : 0.0;  // of no denormal number
    int low, high;
    codes[(first_unit + u) * 2u] = to_codes(values, 0u, inverse, low);
    codes[(first_unit + u) * 2u + 1u] = to_codes(values, 4u, inverse, high);
    units[first_unit + u] = uvec2(floatBitsToUint(scale), uint(low & 0xFFFF) | uint(high) << 16);
}

void prepare(uint row) {
    const uint width = args.width / 32u, first_unit = row * width;
    float norm = 1.0;
    if (args.has_norm != 0u) {
        float squares = 0.0;
        for (uint i = gl_LocalInvocationID.x; i < width * 8u; i += gl_WorkGroupSize.x) {
            const vec4 x = x4[first_unit * 8u + i];
            squares += dot(x, x);
        }
        norm = 1.0 / sqrt(group_sum(squares) / float(args.width) + args.eps);
    }
    for (uint u = gl_LocalInvocationID.x; u < width; u += gl_WorkGroupSize.x) quantize_unit(first_unit, u, norm);
}

void main() {
    const uint rows = rows_in_step(args.rows_of) * args.pieces;
    for (uint row = gl_WorkGroupID.x; row < rows; row += gl_NumWorkGroups.x) prepare(row);
}
