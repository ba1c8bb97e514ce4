// for each format, with cooperative matrices, also of a work-group, also of int8
// y[t][r] (+)= w[r] . x[t] + bias[r] for many tokens, on matrix units; activations come from prepare_halves.comp, 16 bits
// each, with a factor for each row, or in int8 from prepare_codes.comp, with a scale for each 32. Needs cols % 32 == 0.
// Grid: x is over tiles of BN tokens, so that work-groups that run side by side share rows of the weight; y is over tiles
// of BM rows. Shared memory: a tile of the weight and one of the activations, BK columns of each; at the end results.
// Sums in f32: a matrix unit's of TK columns, added up over the columns in order. A weight is decoded once for BN tokens.
#include "coop.glsl"
layout(push_constant) uniform Push { LinearArgs args; };
#include "weights.glsl"
#include "half_units.glsl"
layout(set = 0, binding = 1, std430) readonly buffer Halves { uvec4 halves[]; };
layout(set = 0, binding = 2, std430) buffer Y { float y[]; };
#define STEP_BINDING 3
#include "step.glsl"
layout(set = 0, binding = 4, std430) readonly buffer Bias { float bias[]; };
#define FACTORS_BINDING 5
#include "token_factors.glsl"

uint first_row, first_token, tokens;

uint weight_row(uint r) { return WHOLE ? first_row + r : min(first_row + r, args.rows - 1u); }
uint x_row(uint n, uint t) { return WHOLE ? first_token + t : min(first_token + t, tokens - 1u); }

#ifdef GROUP_MATRICES
float shaped(const in uint r, const in uint t, const in float sum) {
    const float scaled = sum * token_factor(min(first_token + t, tokens - 1u));
    return args.has_bias != 0u ? scaled + bias[args.first_row + min(first_row + r, args.rows - 1u)] : scaled;
}
#else
void put(uint in_tile, uint t_in_tile, float sum) {
    const uint r = first_row + in_tile, t = first_token + t_in_tile;
    if (r < args.rows && t < tokens) {
        const uint row = args.first_row + r, at = t * args.stride + row;
        sum *= token_factor(t);
        if (args.has_bias != 0u) sum += bias[row];
        y[at] = args.accumulate != 0u ? y[at] + sum : sum;
    }
}
#endif

#include "coop_product.glsl"

void main() {
    weight_units = args.units;
    tokens = rows_in_step(args.rows_of);
    first_row = gl_WorkGroupID.y * BM;
    first_token = args.first_token + gl_WorkGroupID.x * BN;
    if (first_token >= tokens) return;
    tile_product();
}
