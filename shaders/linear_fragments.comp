// for each format, with cooperative matrices of halfs alone
// y[t][r] (+)= w[r] . x[t] + bias[r] for up to 64 tokens, on matrix units; the grid is over tiles of rows: see
// few_fragments.glsl.
#include "fragment_tile.glsl"
layout(push_constant) uniform Push { FewArgs args; };
#define SHARED_BOOK
#include "weights.glsl"
#include "half_units.glsl"
layout(set = 0, binding = 1, std430) readonly buffer Halves { uvec4 halves[]; };
layout(set = 0, binding = 1, std430) readonly buffer Reaches { float reaches[]; };
layout(set = 0, binding = 2, std430) coherent buffer Y { float y[]; };
layout(set = 0, binding = 2, std430) coherent buffer Y4 { vec4 y4[]; };
#define STEP_BINDING 3
#include "step.glsl"
layout(set = 0, binding = 4, std430) readonly buffer Bias { float bias[]; };
layout(set = 0, binding = 5, std430) readonly buffer RowScales { float row_scales[]; };

#define X_BINDING 6
#define GAIN_BINDING 7
#define COUNTERS_BINDING 10
#define HAND_BINDING 8
#define HAND_GAIN_BINDING 9
#define AGAIN_BINDING 11

float result(uint r, uint t, float sum) {
    const uint row = args.first_row + r, at = t * args.stride + row;
    if (args.has_bias != 0u) sum += bias[row];
    if (args.accumulate != 0u) sum += y[at];
    y[at] = sum;
    return sum;
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
