// Rows of activations, normed where there is a gain, as halfs for matrix units, each row times a power of two that
// keeps it in range; `scales` gets its inverse. With BFLOATS as bfloat16, whose range is that of floats. A row of
// several pieces counts as so many rows. A work-group per row.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool BFLOATS = false;
layout(constant_id = 2) const bool IN_ORDER = false;
layout(push_constant) uniform Push { HalvesArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer X { vec4 x4[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Halves { uvec2 halves[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Scales { float scales[]; };
layout(set = 0, binding = 3, std430) readonly buffer Gain { vec4 gain4[]; };
#define STEP_BINDING 4
#include "step.glsl"
#include "reduce.glsl"
#include "bfloat.glsl"

float norm, up, down;  // of a row: what it is multiplied by, and the inverse of `up`

void measure(uint first) {
    float squares = 0.0, most = 0.0;
    for (uint i = gl_LocalInvocationID.x; i < args.width / 4u; i += gl_WorkGroupSize.x) {
        const vec4 v = x4[first / 4u + i], size = abs(args.has_norm != 0u ? v * gain4[i] : v);
        squares += dot(v, v);
        most = max(most, max(max(size.x, size.y), max(size.z, size.w)));
    }
    if (args.has_norm != 0u) norm = 1.0 / sqrt(group_sum(squares) / float(args.width) + args.eps);
    if (BFLOATS) return;
    most = group_max(most) * norm;
    // Halfs end at 65504: the largest goes to about 2^9, so that sums of small ones keep their bits as well.
    const uint exponent = clamp((floatBitsToUint(most) >> 23) & 255u, 40u, 215u);
    up = uintBitsToFloat((254u + 9u - exponent) << 23);
    down = uintBitsToFloat((exponent - 9u) << 23);
}

void prepare(uint row) {
    const uint first = row * args.width;
    norm = up = down = 1.0;
    if (!BFLOATS || args.has_norm != 0u) measure(first);
    // As half_units.glsl says.
    for (uint i = gl_LocalInvocationID.x; i < args.width / 4u; i += gl_WorkGroupSize.x) {
        vec4 v = x4[first / 4u + i] * (norm * up);
        if (args.has_norm != 0u) v *= gain4[i];
        if (BFLOATS)
            halves[first / 4u + i] = uvec2(to_bfloat_bits(v.x) | to_bfloat_bits(v.y) << 16,
                                           to_bfloat_bits(v.z) | to_bfloat_bits(v.w) << 16);
        else
            halves[first / 4u + i] =
                IN_ORDER ? uvec2(packHalf2x16(v.xy), packHalf2x16(v.zw)) : uvec2(packHalf2x16(v.xz), packHalf2x16(v.yw));
    }
    if (gl_LocalInvocationID.x == 0u) scales[row] = down;
}

void main() {
    const uint rows = rows_in_step(args.rows_of) * args.pieces;
    for (uint row = gl_WorkGroupID.x; row < rows; row += gl_NumWorkGroups.x) prepare(row);
}
