// Rows of activations, normed where there is a gain, as halfs for matrix units, each row times a power of two that
// keeps it in range; `scales` gets its inverse. With BFLOATS as bfloat16, whose range is that of floats. A row of
// several pieces counts as so many rows. A work-group per row. With OWNERS the rows of a step of at most TOKENS lie as
// few_fragments.glsl reads them: eights of elements of all tokens side by side, those of OWNERS units in turn, and zeros
// behind the last unit.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool BFLOATS = false;
layout(constant_id = 2) const bool IN_ORDER = false;
layout(constant_id = 3) const uint OWNERS = 0;
layout(constant_id = 4) const uint TOKENS = 8;
layout(constant_id = 5) const uint HELD = 0;  // fours of an invocation, where all find room: they are read once
layout(push_constant) uniform Push { HalvesArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer X { vec4 x4[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Halves { uvec2 halves[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Scales { float scales[]; };
layout(set = 0, binding = 3, std430) readonly buffer Gain { vec4 gain4[]; };
#define STEP_BINDING 4
#include "step.glsl"
#define REDUCES_SUM_AND_MAX
#include "reduce.glsl"
#include "bfloat.glsl"

float norm, up, down;  // of a row: what it is multiplied by, and the inverse of `up`
vec4 held[HELD == 0 ? 1 : HELD];

void measure_four(uint i, vec4 v, inout float squares, inout float most) {
    const vec4 size = abs(args.has_norm != 0u ? v * gain4[i] : v);
    squares += dot(v, v);
    most = max(most, max(max(size.x, size.y), max(size.z, size.w)));
}

void measure(uint first) {
    const uint fours = args.width / 4u, step = gl_WorkGroupSize.x;
    float squares = 0.0, most = 0.0;
    [[unroll]] for (uint n = 0; n < HELD; ++n) held[n] = x4[first / 4u + min(gl_LocalInvocationID.x + n * step, fours - 1u)];
    [[unroll]] for (uint n = 0; n < HELD; ++n) {
        const uint i = gl_LocalInvocationID.x + n * step;
        if (i < fours) measure_four(i, held[n], squares, most);
    }
    for (uint i = gl_LocalInvocationID.x; HELD == 0u && i < fours; i += step) measure_four(i, x4[first / 4u + i], squares, most);
    const vec2 both = group_sum_and_max(squares, most);
    if (args.has_norm != 0u) norm = 1.0 / sqrt(both.x / float(args.width) + args.eps);
    if (BFLOATS) return;
    most = both.y * norm;
    // Halfs end at 65504: the largest goes to about 2^9, so that sums of small ones keep their bits as well.
    const uint exponent = clamp((floatBitsToUint(most) >> 23) & 255u, 40u, 215u);
    up = uintBitsToFloat((254u + 9u - exponent) << 23);
    down = uintBitsToFloat((exponent - 9u) << 23);
}

// Where four elements of a row go.
uint place_of(uint row, uint i) {
    if (OWNERS == 0u) return row * (args.width / 4u) + i;
    const uint unit = i / 8u, eight = i / 2u % 4u;
    return (((unit / OWNERS * 4u + eight) * TOKENS + row) * OWNERS + unit % OWNERS) * 2u + i % 2u;
}

// As half_units.glsl says.
void put_four(uint row, uint i, vec4 v) {
    v *= norm * up;
    if (args.has_norm != 0u) v *= gain4[i];
    if (BFLOATS)
        halves[place_of(row, i)] =
            uvec2(to_bfloat_bits(v.x) | to_bfloat_bits(v.y) << 16, to_bfloat_bits(v.z) | to_bfloat_bits(v.w) << 16);
    else
        halves[place_of(row, i)] =
            IN_ORDER ? uvec2(packHalf2x16(v.xy), packHalf2x16(v.zw)) : uvec2(packHalf2x16(v.xz), packHalf2x16(v.yw));
}

void prepare(uint row) {
    const uint first = row * args.width;
    norm = up = down = 1.0;
    if (!BFLOATS || args.has_norm != 0u) measure(first);
    const uint fours = args.width / 4u, step = gl_WorkGroupSize.x;
    [[unroll]] for (uint n = 0; n < HELD; ++n) {
        const uint i = gl_LocalInvocationID.x + n * step;
        if (i < fours) put_four(row, i, held[n]);
    }
    for (uint i = gl_LocalInvocationID.x; HELD == 0u && i < fours; i += step) put_four(row, i, x4[first / 4u + i]);
    if (OWNERS > 1u) {
        const uint group = 8u * OWNERS, all = (args.width / 4u + group - 1u) / group * group;
        for (uint i = args.width / 4u + gl_LocalInvocationID.x; i < all; i += gl_WorkGroupSize.x)
            halves[place_of(row, i)] = uvec2(0u);
    }
    if (gl_LocalInvocationID.x == 0u) scales[row] = down;
}

void main() {
    const uint rows = rows_in_step(args.rows_of) * args.pieces;
    for (uint row = gl_WorkGroupID.x; row < rows; row += gl_NumWorkGroups.x) prepare(row);
}
