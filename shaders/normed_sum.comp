// y = scale * (y + norm(first_norm(first) + second_norm(second))). A work-group per row. What an invocation has of a row
// that is not too wide is all on its way before any of it is used.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint WIDTH = 4096;
layout(constant_id = 2) const uint THREADS = 256;
layout(push_constant) uniform Push { NormedSumArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer First { float first[]; };
layout(set = 0, binding = 1, std430) readonly buffer Second { float second[]; };
layout(set = 0, binding = 2, std430) readonly buffer FirstGain { float first_gain[]; };
layout(set = 0, binding = 3, std430) readonly buffer SecondGain { float second_gain[]; };
layout(set = 0, binding = 4, std430) readonly buffer Gain { float gain[]; };
layout(set = 0, binding = 5, std430) buffer Y { float y[]; };
#define STEP_BINDING 6
#include "step.glsl"
#define REDUCES_TWO
#include "reduce.glsl"
const uint TURNS = (WIDTH + THREADS - 1) / THREADS, HELD = TURNS < 8 ? TURNS : 8;  // elements of an invocation

vec2 scales;  // of both
vec2 both_at(uint i) { return vec2(first[i], second[i]); }
vec2 gains_at(uint i) { return vec2(first_gain[i], second_gain[i]); }
float sum_of(vec2 both, vec2 gains) { return dot(both * scales, gains); }

void norm_row(uint base) {
    const uint own = gl_LocalInvocationID.x;
    vec2 held[HELD], both_gains[HELD];
    float gains[HELD], before[HELD], sums[HELD];
    [[unroll]] for (uint n = 0; n < HELD; ++n) {
        const uint i = min(own + n * THREADS, WIDTH - 1u);
        held[n] = both_at(base + i);
        both_gains[n] = gains_at(i);
        gains[n] = gain[i];
        before[n] = y[base + i];
    }
    vec2 squares = vec2(0.0);
    [[unroll]] for (uint n = 0; n < HELD; ++n)
        if (own + n * THREADS < WIDTH) squares += held[n] * held[n];
    for (uint i = own + HELD * THREADS; i < WIDTH; i += THREADS) squares += both_at(base + i) * both_at(base + i);
    scales = 1.0 / sqrt(group_sums(squares) / float(WIDTH) + vec2(args.first_eps, args.second_eps));
    float square = 0.0;
    [[unroll]] for (uint n = 0; n < HELD; ++n) {
        sums[n] = sum_of(held[n], both_gains[n]);
        if (own + n * THREADS < WIDTH) square += sums[n] * sums[n];
    }
    for (uint i = own + HELD * THREADS; i < WIDTH; i += THREADS) {
        const float sum = sum_of(both_at(base + i), gains_at(i));
        square += sum * sum;
    }
    const float scale = 1.0 / sqrt(group_sum(square) / float(WIDTH) + args.eps);
    [[unroll]] for (uint n = 0; n < HELD; ++n)
        if (own + n * THREADS < WIDTH) y[base + own + n * THREADS] = args.scale * (before[n] + sums[n] * scale * gains[n]);
    for (uint i = own + HELD * THREADS; i < WIDTH; i += THREADS)
        y[base + i] = args.scale * (y[base + i] + sum_of(both_at(base + i), gains_at(i)) * scale * gain[i]);
}

void main() {
    for (uint row = gl_WorkGroupID.x; row < rows_in_step(args.rows_of); row += gl_NumWorkGroups.x) norm_row(row * WIDTH);
}
