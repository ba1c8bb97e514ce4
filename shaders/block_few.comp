// for each cache
// As block_attention.comp, for heads of a multiple of 16: a work-group takes QUERIES heads of a row that share a kv head and one
// of up to `splits` shares of the keys: x over splits, y over groups of heads, z over kv heads. A key's number counts what the
// row sees: the tokens of its blocks, then those behind the last complete one.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 256;
layout(constant_id = 1) const uint HEAD_DIM = 128;
layout(constant_id = 2) const uint QUERIES = 4;
layout(constant_id = 3) const uint STEP_KIND = RL_STEP_ALONE;
layout(constant_id = 4) const uint GROUP = 4;  // heads that share a kv head
#include "few_sizes.glsl"
layout(push_constant) uniform Push { BlockFewArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer Q4 { vec4 q4[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y4 { vec4 y4[]; };
#define STEP_BINDING 2
#define KEYS_BINDING 3
#define VALUES_BINDING 4
#define ROWS_APART
#include "step.glsl"
#define CACHE_READS
#include "cache_rows.glsl"
layout(set = 0, binding = 5, std430) readonly buffer Chosen { float chosen[]; };
layout(set = 0, binding = 5, std430) readonly buffer Sinks { float sinks[]; };  // there are none
layout(set = 0, binding = 6, std430) coherent buffer Partials { float partials[]; };
layout(set = 0, binding = 6, std430) coherent buffer Partials4 { vec4 partials4[]; };
// Of work-groups that are done, per group of queries and kv head: zero before and after.
layout(set = 0, binding = 7, std430) coherent buffer Counters { uint counters[]; };

shared vec4 queries[QUERIES * FOURS];
shared float chances[QUERIES * CHANCES];  // of a tile: by key, then query
shared float tops[QUERIES], totals[QUERIES], corrections[QUERIES];
shared uint places[KEYS];  // of a tile's keys
uint row, in_blocks, complete, tile_base;

#include "cache.glsl"
#include "attention_parts.glsl"
uint four_of(uint i, uint four) { return (row * args.heads + query_head(own_query(i))) * FOURS + four; }
void put_result(uint i, uint four, vec4 value) { y4[four_of(i, four)] = value; }
#include "attention_merge.glsl"
float score_of(float product) { return product * args.scale; }
bool sees_key(uint query, uint key) { return query_row(query) == row; }
uint cache_place(uint key) { return places[key - tile_base]; }
#include "few_tiles.glsl"

// Where this tile's keys lie; those of the tile before have been read.
void begin_tile(uint base, uint end) {
    tile_base = base;
    for (uint t = gl_LocalInvocationID.x; t < KEYS; t += THREADS) {
        const uint key = min(base + t, end - 1u);
        uint token = complete + key - in_blocks;
        if (key < in_blocks)
            token = uint(max(chosen[row * args.most + key / args.ratio], 0.0)) * args.ratio + key % args.ratio;
        places[t] = gl_WorkGroupID.z * args.capacity + row_of(token);
    }
    barrier();
}

void main() {
    const uint tid = gl_LocalInvocationID.x;
    row = query_row(own_query(0u));
    if (row >= step_rows) return;
#ifdef CACHE_COUNTED
    cache_tokens = args.kv_heads * args.capacity;
#endif
    const uint end = (STEP_KIND == RL_STEP_ALONE ? step_position + row : step_word(step_places + 2u * row)) + 1u;
    begin_keys(row, 0u);
    complete = end / args.ratio * args.ratio;
    in_blocks = min(args.most, end / args.ratio) * args.ratio;
    const uint all = in_blocks + end - complete;
    // Two splits of the least keys are not worth bringing together.
    const uint wanted = all <= 2u * LEAST_KEYS ? 1u : min((all + LEAST_KEYS - 1u) / LEAST_KEYS, args.splits);
    const uint share = ((all + wanted - 1u) / wanted + 31u) / 32u * 32u, used = (all + share - 1u) / share;
    if (gl_WorkGroupID.x >= used) return;
    const uint from = gl_WorkGroupID.x * share, to = min(from + share, all);
    for (uint i = tid; i < QUERIES * FOURS; i += THREADS)
        queries[i] = query_row(own_query(i / FOURS)) == row ? q4[four_of(i / FOURS, i % FOURS)] : vec4(0.0);
    for (uint i = tid; i < QUERIES; i += THREADS) {
        tops[i] = kNone;
        totals[i] = 0.0;
    }
    vec4 sums[QUERIES];
    [[unroll]] for (uint i = 0; i < QUERIES; ++i) sums[i] = vec4(0.0);
    for (uint base = from; base < to; base += KEYS) {
        begin_tile(base, to);
        fetch_tile(base, to);
        attend_tile(base, to, sums);
    }
    put_sums(used, sums);
    if (used > 1u && last_of(used)) merge_splits(used);
}
