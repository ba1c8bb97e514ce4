// for each format, with cooperative matrices of halfs alone
// y[t][r] = act(gate[r] . x[t]) * (up[r] . x[t]) for up to 64 tokens, on matrix units: see linear_fragments.comp.
#define MATRICES 2
#define PAIRED
#include "fragment_tile.glsl"
layout(push_constant) uniform Push { FewArgs args; };
#define SHARED_BOOK
#include "weights.glsl"
#include "half_units.glsl"
#include "act.glsl"
layout(set = 0, binding = 1, std430) readonly buffer Halves { uvec4 halves[]; };
layout(set = 0, binding = 1, std430) readonly buffer Reaches { float reaches[]; };
layout(set = 0, binding = 2, std430) coherent buffer Y { float y[]; };
layout(set = 0, binding = 2, std430) coherent buffer Y4 { vec4 y4[]; };
#define STEP_BINDING 3
#include "step.glsl"
layout(set = 0, binding = 4, std430) readonly buffer RowScales { float row_scales[]; };
#define X_BINDING 5
#define GAIN_BINDING 6
#define COUNTERS_BINDING 9
#define HAND_BINDING 7
#define HAND_GAIN_BINDING 8
#define AGAIN_BINDING 10

float result(uint r, uint t, float gate, float up) {
    const float value = act_times(args.act, gate, up);
    y[t * args.stride + args.first_row + r] = value;
    return value;
}
#include "few_fragments.glsl"

void main() {
    weight_units = args.units;
#ifdef FORMAT_BOOK
    share_book();
    barrier();
#endif
    tokens = rows_in_step(args.rows_of);
    if (tokens > 0u) few_products();
}
