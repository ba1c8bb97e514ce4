// for each cache
// Causal attention to the tokens of chosen blocks and to those behind the last complete one. A work-group per row and head,
// which goes over tiles of as many keys as it has invocations; of what they see, an invocation sums up its own elements.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 128;
layout(constant_id = 1) const uint HEAD_DIM = 128;
layout(constant_id = 2) const uint STEP_KIND = RL_STEP_ALONE;
const uint OWN = (HEAD_DIM + THREADS - 1) / THREADS;  // elements of an invocation
layout(push_constant) uniform Push { BlockArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer Q { float q[]; };
layout(set = 0, binding = 1, std430) readonly buffer Chosen { float chosen[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Y { float y[]; };
#define STEP_BINDING 3
#define KEYS_BINDING 4
#define VALUES_BINDING 5
#include "step.glsl"
#define CACHE_READS
#include "cache_rows.glsl"
#include "cache.glsl"
#include "reduce.glsl"

shared float query[HEAD_DIM];
shared float chances[THREADS];
shared uint places[THREADS];  // of a tile's keys in the cache

// How many blocks a row has chosen: those that it has not are behind them.
uint chosen_of(uint row) {
    float some = 0.0;
    for (uint i = gl_LocalInvocationID.x; i < args.blocks; i += THREADS)
        if (chosen[row * args.blocks + i] >= 0.0) some += 1.0;
    return uint(group_sum(some));
}

void attend(uint row, uint head) {
    const uint tid = gl_LocalInvocationID.x, kv_head = head / (args.heads / args.kv_heads);
    const uint token = STEP_KIND == RL_STEP_ALONE ? step_position + row : step_word(step_places + 2u * row);
    const uint complete = (token + 1u) / args.ratio * args.ratio, in_blocks = chosen_of(row) * args.ratio;
    const uint keys = in_blocks + token + 1u - complete, own = (row * args.heads + head) * HEAD_DIM;
    begin_keys(row, 0u);
    for (uint i = tid; i < HEAD_DIM; i += THREADS) query[i] = q[own + i];
    float top = uintBitsToFloat(0xFF800000u), total = 0.0, sums[OWN];
    [[unroll]] for (uint i = 0; i < OWN; ++i) sums[i] = 0.0;
    for (uint base = 0; base < keys; base += THREADS) {
        barrier();  // the query is there, and the tile before is done
        const uint key = base + tid, count = min(THREADS, keys - base);
        float score = uintBitsToFloat(0xFF800000u);
        if (key < keys) {
            const uint seen = key < in_blocks
                                  ? uint(chosen[row * args.blocks + key / args.ratio]) * args.ratio + key % args.ratio
                                  : complete + key - in_blocks;
            const uint place = kv_head * args.capacity + row_of(seen);
            places[tid] = place;
            score = 0.0;
            for (uint i = 0; i < HEAD_DIM; ++i) score += query[i] * key_at(place, HEAD_DIM, i);
            score *= args.scale;
        }
        const float raised = max(top, group_max(score)), correction = exp(top - raised);
        top = raised;
        const float chance = key < keys ? exp(score - top) : 0.0;
        chances[tid] = chance;
        total = total * correction + group_sum(chance);
        [[unroll]] for (uint i = 0; i < OWN; ++i) {
            const uint element = min(i * THREADS + tid, HEAD_DIM - 1u);
            sums[i] *= correction;
            for (uint t = 0; t < count; ++t) sums[i] += chances[t] * value_at(places[t], HEAD_DIM, element);
        }
    }
    [[unroll]] for (uint i = 0; i < OWN; ++i)
        if (i * THREADS + tid < HEAD_DIM) y[own + i * THREADS + tid] = sums[i] / total;
}

void main() {
#ifdef CACHE_COUNTED
    cache_tokens = args.kv_heads * args.capacity;
#endif
    const uint end = min(args.end_row, step_rows) * args.heads;
    for (uint n = args.first_row * args.heads + gl_WorkGroupID.x; n < end; n += gl_NumWorkGroups.x) {
        attend(n / args.heads, n % args.heads);
        barrier();
    }
}
