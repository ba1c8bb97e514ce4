// Kernels of one token: where its activations come from, and how results go to the next dispatch. A work-group
// computes GROUP results at a time, a multiple of 16. With APART the grid's y is over the rows of a step, each of which is
// computed as if it were alone. Wants GROUP, TAKE, COLS, APART, args of LinearArgs or ExpertRowArgs, HAND_BINDING,
// HAND_GAIN_BINDING, STEP_BINDING and reduce.glsl.
#include "step.glsl"
#define TOKEN (APART ? gl_WorkGroupID.y : 0u)
#define HAND_ROW TOKEN
layout(set = 0, binding = 1, std430) readonly buffer X4 { vec4 x4[]; };
layout(set = 0, binding = 1, std430) readonly buffer Handed { uvec4 handed[]; };
layout(set = 0, binding = HAND_GAIN_BINDING, std430) readonly buffer HandGain { float hand_gain[]; };
#include "own_activations.glsl"
#include "take_row.glsl"
// Of two turns, so that one can be left while the next is computed: results, and the gains of the norm they go to.
shared vec4 results[GROUP / 2];
shared vec4 result_gains[GROUP / 2];
vec4 left_values(uint i) { return results[i]; }
vec4 left_gains(uint i) { return result_gains[i]; }
#include "leave_row.glsl"

// True where the step has no such row.
bool beyond_rows() { return APART && TOKEN > 0u && TOKEN >= step_rows; }
// What results are to be multiplied by.
float begin_row() {
    if (TAKE) return take_own(args.has_norm != 0u, args.eps);
    prepare_own(TOKEN * COLS, args.has_norm != 0u, args.eps);
    return 1.0;
}
// Read early, so that it is there when the result is.
float gain_of(uint row) { return args.hand_normed != 0u ? hand_gain[row] : 1.0; }
void keep_result(uint turn, uint i, float value, float gain) {
    const uint at = turn * GROUP + i;
    results[at / 4u][at & 3u] = value;
    result_gains[at / 4u][at & 3u] = gain;
}
// All invocations of the work-group together; `base`: row of the first result, `end`: behind the last of all.
void leave_results(uint turn, uint base, uint end) {
    if (args.hand_units == 0u) return;
    barrier();
    const uint i = gl_LocalInvocationID.x;
    if (i < GROUP / 4u && base + i * 4u < end)
        leave_four(turn * (GROUP / 4u) + i, base / 4u + i);
}
