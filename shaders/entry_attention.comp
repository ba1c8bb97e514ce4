// for each cache of latents
// Causal attention of all heads on the same rows of latents, which are keys and values: those of the last tokens, and entries
// of blocks. A work-group takes QUERIES heads of a row and one of up to `splits` shares of what the row sees: x over splits,
// y over groups of heads. See latent_tiles.glsl; a key's number there counts tokens first, then entries.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 256;
layout(constant_id = 1) const uint WIDTH = 512;
layout(constant_id = 2) const uint QUERIES = 8;
layout(constant_id = 3) const uint STEP_KIND = RL_STEP_ALONE;
const uint RANK = WIDTH;
#include "latent_constants.glsl"
layout(push_constant) uniform Push { EntryArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer Q { float q[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { float y[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y4 { vec4 y4[]; };
#define STEP_BINDING 2
#define KEYS_BINDING 3
#define VALUES_BINDING 3
#define ENTRIES_BINDING 7
#define ROWS_APART
#include "step.glsl"
#define CACHE_READS
#include "cache_rows.glsl"
layout(set = 0, binding = 4, std430) readonly buffer Sinks { float sinks[]; };
layout(set = 0, binding = 5, std430) coherent buffer Partials { float partials[]; };
layout(set = 0, binding = 5, std430) coherent buffer Partials4 { vec4 partials4[]; };
// Of work-groups that are done, per group of queries: zero before and after.
layout(set = 0, binding = 6, std430) coherent buffer Counters { uint counters[]; };
layout(set = 0, binding = 8, std430) readonly buffer Chosen { float chosen[]; };
#include "cache.glsl"
#include "entries.glsl"
#define GROUP args.heads
#include "attention_parts.glsl"

const uint OF_ENTRIES = 0x80000000u;  // a row of the entries
shared uint places[KEYS];             // of a tile's keys
uint row, first_token, tokens, complete;  // what the row sees
uint tile_base;

vec4 latent4(uint place, uint four) {
    if (place >= OF_ENTRIES) return entry4(place & ~OF_ENTRIES, four);
    if (WIDTH % 4u == 0u) return key4_at(place, WIDTH, four);
    vec4 k = vec4(0.0);
    [[unroll]] for (uint e = 0; e < 4; ++e)
        if (four * 4u + e < WIDTH) k[e] = key_at(place, WIDTH, four * 4u + e);
    return k;
}

uint find_place(uint key) {
    if (key < tokens) return row_of(first_token + key);
    uint block = key - tokens;
    if (args.most > 0u) block = min(uint(max(chosen[row * args.most + block], 0.0)), complete - 1u);
    uint token = block * args.ratio;
    if (STEP_KIND != RL_STEP_ALONE)
        token = in_page(step_pages + step_word(step_places + 2u * row + 1u) + args.entries_page, token);
    return token / args.ratio | OF_ENTRIES;
}

void begin_tile(uint first, uint end) {
    tile_base = first;
    for (uint t = gl_LocalInvocationID.x; t < KEYS; t += THREADS) places[t] = find_place(min(first + t, end - 1u));
    barrier();
}
uint place_of(uint key) { return places[key - tile_base]; }
bool sees_key(uint query, uint key) { return query_row(query) == row; }
#include "latent_tiles.glsl"

void main() {
    row = query_row(own_query(0u));
    if (row >= step_rows) return;
#ifdef CACHE_COUNTED
    cache_tokens = args.capacity;
#endif
    const uint end = (STEP_KIND == RL_STEP_ALONE ? step_position + row : step_word(step_places + 2u * row)) + 1u;
    first_token = first_seen(end);
    tokens = end - first_token;
    complete = args.ratio > 0u ? end / args.ratio : 0u;
    begin_keys(row, first_token);
    const uint all = tokens + (args.most > 0u ? min(args.most, complete) : complete);
    // Two splits of the least keys are not worth bringing together.
    const uint wanted = all <= 2u * LEAST_KEYS ? 1u : min((all + LEAST_KEYS - 1u) / LEAST_KEYS, args.splits);
    const uint share = ((all + wanted - 1u) / wanted + 31u) / 32u * 32u, used = (all + share - 1u) / share;
    if (gl_WorkGroupID.x >= used) return;
    const uint from = gl_WorkGroupID.x * share;
    attend_to_keys(from, min(from + share, all), used);
}
