// for each cache of latents
// Causal attention of all heads on the same rows of latents: a key is a whole row, its value the first RANK elements of
// it. A work-group takes QUERIES queries (row, head) and one of up to `splits` shares of the keys: x over splits, y over
// groups of queries. See latent_tiles.glsl; more than one split of a group are brought together by latent_merge.comp.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 256;
layout(constant_id = 1) const uint WIDTH = 576;
layout(constant_id = 2) const uint RANK = 512;
layout(constant_id = 3) const uint QUERIES = 8;
layout(constant_id = 4) const uint STEP_KIND = RL_STEP_ALONE;
#include "latent_constants.glsl"
layout(push_constant) uniform Push { AttentionArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer Q { float q[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { float y[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y4 { vec4 y4[]; };
#define STEP_BINDING 2
#define KEYS_BINDING 3
#define VALUES_BINDING 3
#include "step.glsl"
#define CACHE_READS
#include "cache_rows.glsl"
layout(set = 0, binding = 4, std430) readonly buffer Sinks { float sinks[]; };  // there are none
layout(set = 0, binding = 5, std430) writeonly buffer Partials { float partials[]; };
layout(set = 0, binding = 5, std430) writeonly buffer Partials4 { vec4 partials4[]; };
#include "cache.glsl"

#define GROUP args.heads
#include "attention_parts.glsl"
#include "latent_splits.glsl"

vec4 latent4(uint row, uint four) {
    if (WIDTH % 4u == 0u) return key4_at(row, WIDTH, four);
    vec4 k = vec4(0.0);
    [[unroll]] for (uint e = 0; e < 4; ++e)
        if (four * 4u + e < WIDTH) k[e] = key_at(row, WIDTH, four * 4u + e);
    return k;
}
uint place_of(uint key) { return row_of(key); }
bool sees_key(uint query, uint key) { return sees(query, key); }
void begin_tile(uint first, uint end) {}
#define MERGED_APART
#include "latent_tiles.glsl"

void main() {
    if (query_row(own_query(0u)) >= end_row()) return;
#ifdef CACHE_COUNTED
    cache_tokens = args.capacity;
#endif
    begin_keys(query_row(own_query(0u)), 0u);
    const Splits splits = splits_of(own_query(0u));
    if (gl_WorkGroupID.x >= splits.used) return;
    const uint from = gl_WorkGroupID.x * splits.share;
    attend_to_keys(from, min(from + splits.share, splits.end), splits.used);
}
