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
layout(set = 0, binding = 2, std430) writeonly buffer Y { float y[]; };
#define STEP_BINDING 3
#include "step.glsl"
layout(set = 0, binding = 4, std430) readonly buffer RowScales { float row_scales[]; };

void put(uint r, uint t, float gate, float up) {
    const float scale = row_scales[t];
    y[t * args.stride + args.first_row + r] = act_times(args.act, gate * scale, up * scale);
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
