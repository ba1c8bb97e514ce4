// for each format
// y[t][r] (+)= w[r] . x[t] + bias[r] for many tokens, in f32. A work-group of 256 computes 64 rows of 64 tokens,
// 4 x 4 per invocation, over tiles of 32 columns in shared memory.
#include "types.glsl"
layout(local_size_x = 256) in;
layout(push_constant) uniform Push { LinearArgs args; };
#include "weights.glsl"
layout(set = 0, binding = 1, std430) readonly buffer X4 { vec4 x4[]; };
layout(set = 0, binding = 1, std430) readonly buffer X1 { float x1[]; };
layout(set = 0, binding = 2, std430) buffer Y { float y[]; };
#define STEP_BINDING 3
#include "step.glsl"
layout(set = 0, binding = 4, std430) readonly buffer Bias { float bias[]; };

const uint kStride = 68;  // of a column of 64, padded against bank conflicts
shared float w_tile[32 * kStride];
shared float x_tile[32 * kStride];

// Each invocation loads 8 columns of one row: 4k .. 4k + 3 and 16 + 4k .. 16 + 4k + 3.
void load_tiles(uint first_row, uint first_token, uint tokens, uint column) {
    const uint r = gl_LocalInvocationID.x / 4u, k = gl_LocalInvocationID.x % 4u;
    const uint row = min(first_row + r, args.rows - 1u), token = min(first_token + r, tokens - 1u);
    float w[8], x[8];
#ifdef FORMAT_FLOAT
    [[unroll]] for (uint i = 0; i < 8; ++i) {
        const uint c = column + (i < 4u ? 4u * k + i : 12u + 4u * k + i);
        w[i] = c < args.cols ? weight_element(0u, row * args.cols + c) : 0.0;
        x[i] = c < args.cols ? x1[token * args.cols + c] : 0.0;
    }
#else
    const uint units = args.cols / 32u, unit = row * units + column / 32u, x_unit = token * units + column / 32u;
    const uvec2 words = unit_words(0u, unit, k);
    const vec4 s = unit_scales(0u, unit);
    const vec4 a = decode4(words.x, s.x, s.y), b = decode4(words.y, s.z, s.w);
    const vec4 c = x4[x_unit * 8u + k], d = x4[x_unit * 8u + 4u + k];
    [[unroll]] for (uint i = 0; i < 4; ++i) {
        w[i] = a[i];
        w[i + 4] = b[i];
        x[i] = c[i];
        x[i + 4] = d[i];
    }
#endif
    [[unroll]] for (uint i = 0; i < 8; ++i) {
        const uint c = i < 4u ? 4u * k + i : 12u + 4u * k + i;
        w_tile[c * kStride + r] = w[i];
        x_tile[c * kStride + r] = x[i];
    }
}

void main() {
    weight_units = args.units;
    const uint tokens = rows_in_step(args.rows_of);
    const uint first_row = gl_WorkGroupID.x * 64u, first_token = args.first_token + gl_WorkGroupID.y * 64u;
    if (first_token >= tokens) return;
    const uint r = gl_LocalInvocationID.x % 16u * 4u, t = gl_LocalInvocationID.x / 16u * 4u;
    vec4 sums[4];
    [[unroll]] for (uint j = 0; j < 4; ++j) sums[j] = vec4(0.0);
    for (uint column = 0; column < args.cols; column += 32u) {
        barrier();
        load_tiles(first_row, first_token, tokens, column);
        barrier();
        [[unroll]] for (uint c = 0; c < 32; ++c) {
            vec4 w;
            [[unroll]] for (uint i = 0; i < 4; ++i) w[i] = w_tile[c * kStride + r + i];
            [[unroll]] for (uint j = 0; j < 4; ++j) sums[j] += w * x_tile[c * kStride + t + j];
        }
    }
    [[unroll]] for (uint j = 0; j < 4; ++j)
        [[unroll]] for (uint i = 0; i < 4; ++i) {
            if (first_row + r + i >= args.rows || first_token + t + j >= tokens) continue;
            const uint row = args.first_row + first_row + r + i, at = (first_token + t + j) * args.stride + row;
            float sum = sums[j][i];
            if (args.has_bias != 0u) sum += bias[row];
            y[at] = args.accumulate != 0u ? y[at] + sum : sum;
        }
}
