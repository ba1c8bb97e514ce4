// for each format, with cooperative matrices, also of int8
// y[entry][r] = w[expert of the entry][r] . x for a tile of one expert's entries (expert_group.comp) on matrix units;
// x comes from prepare_halves.comp, a row per token or per entry. The buffer is a range of rows counted over all
// experts: rows of others are skipped.
#include "coop.glsl"
layout(push_constant) uniform Push { ExpertCoopArgs args; };
#include "weights.glsl"
#include "half_units.glsl"
layout(set = 0, binding = 1, std430) readonly buffer Halves { uvec4 halves[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Y { float y[]; };
layout(set = 0, binding = 3, std430) readonly buffer Tiles { uvec4 tiles[]; };
layout(set = 0, binding = 4, std430) readonly buffer Order { uint order[]; };
#define FACTORS_BINDING 5
#include "token_factors.glsl"
shared uint entries[BN];
shared float scales[BN];

uint first_row, count;  // of this tile
int first_flat;         // row in this buffer of the tile's first
uint x_rows[X_EACH];  // of the words that this invocation loads

uint weight_row(uint r) { return uint(clamp(first_flat + int(r), 0, int(args.flat_rows) - 1)); }
uint x_row(uint n, uint t) { return x_rows[n]; }

void put(uint r, uint t, float sum) {
    const int at = first_flat + int(r);
    if (first_row + r < args.end_row && t < count && at >= 0 && at < int(args.flat_rows))
        y[entries[t] * args.stride + first_row + r - args.first_row] = sum * scales[t];
}

#include "coop_product.glsl"

uint x_of(uint entry) { return args.per_expert != 0u ? entry : entry / args.used; }

void main() {
    weight_units = args.units;
    const uvec4 tile = tiles[args.first_tile + gl_WorkGroupID.y];
    count = tile.z;
    if (count == 0u) return;
    first_row = args.first_row + gl_WorkGroupID.x * BM;
    first_flat = int(tile.x * args.rows + first_row) - int(args.first_flat);
    if (first_flat + int(BM) <= 0 || first_flat >= int(args.flat_rows)) return;
    [[unroll]] for (uint n = 0; n < X_EACH; ++n) {
        const uint t = min(n * THREADS + gl_LocalInvocationID.x, X_WORDS - 1u) / (BK / PER_WORD);
        x_rows[n] = x_of(order[tile.y + min(t, count - 1u)]);
    }
    for (uint t = gl_LocalInvocationID.x; t < BN; t += THREADS) {
        const uint entry = order[tile.y + min(t, count - 1u)];
        entries[t] = entry;
        scales[t] = token_factor(x_of(entry));
    }
    tile_product();  // its barriers stand before the first use of what was shared here
}
