// for each format, with cooperative matrices, also of a work-group, also of int8
// y[t][r] = act(gate[r] . x[t]) * (up[r] . x[t]) for many tokens, on matrix units; otherwise as linear_coop.
#define MATRICES 2
#define PAIRED
#include "coop.glsl"
layout(push_constant) uniform Push { LinearArgs args; };
#include "weights.glsl"
#include "half_units.glsl"
#include "act.glsl"
layout(set = 0, binding = 1, std430) readonly buffer Halves { uvec4 halves[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Y { float y[]; };
#define STEP_BINDING 3
#include "step.glsl"
#define FACTORS_BINDING 4
#include "token_factors.glsl"

uint first_row, first_token, tokens;

uint weight_row(uint r) {
    const uint row = first_row + r % (BM / 2u);
    return WHOLE ? row : min(row, args.rows - 1u);
}
uint x_row(uint n, uint t) { return WHOLE ? first_token + t : min(first_token + t, tokens - 1u); }

#ifdef GROUP_MATRICES
float shaped(const in uint r, const in uint t, const in float gate, const in float up) {
    const float scale = token_factor(min(first_token + t, tokens - 1u));
    return act_times(args.act, gate * scale, up * scale);
}
#else
void put(uint in_tile, uint t_in_tile, float gate, float up) {
    const uint r = first_row + in_tile, t = first_token + t_in_tile;
    if (r < args.rows && t < tokens) {
        const float scale = token_factor(t);
        y[t * args.stride + args.first_row + r] = act_times(args.act, gate * scale, up * scale);
    }
}
#endif

#include "coop_product.glsl"

void main() {
    weight_units = args.units;
    tokens = rows_in_step(args.rows_of);
    first_row = gl_WorkGroupID.y * (BM / 2u);
    first_token = args.first_token + gl_WorkGroupID.x * BN;
    if (first_token >= tokens) return;
    tile_product();
}
