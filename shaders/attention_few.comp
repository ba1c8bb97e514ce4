// for each cache
// As attention.comp, for few rows and heads of a multiple of 16: bound by how long the cache takes to come. Four
// invocations share a key, so that loads are side by side, and a tile's keys and values are all on their way before one is
// used. The grid is that of attention.comp; a tile has THREADS / 4 keys. Shared memory: queries, in the end results; scores
// and weights of a tile; the sums of two queries at a time. Values are summed in f32 by TURNS groups of invocations, each
// in the order of its keys, and then group after group. The result can be left for the next product, too: one row in int8, several as halfs. And for one row TURN is
// rope_store's work: each work-group turns its queries, and those that see the row's own key turn that and do not read it from
// the cache, where nobody waits for it.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 256;
layout(constant_id = 1) const uint HEAD_DIM = 128;
layout(constant_id = 2) const uint QUERIES = 4;
layout(constant_id = 3) const uint HAND = 0;  // 1: a row in int8; 2: rows as handed_halfs.glsl has them
layout(constant_id = 4) const uint TURN = 0;  // of RL_TURN_*; 0: heads are turned already
layout(constant_id = 5) const uint SUBGROUP = 32;
layout(constant_id = 6) const uint STEP_KIND = RL_STEP_ALONE;
layout(constant_id = 7) const uint GROUP = 4;  // heads that share a kv head
layout(constant_id = 8) const uint HAND_TOKENS = 8;
layout(constant_id = 9) const uint HAND_OWNERS = 4;
#include "few_sizes.glsl"
const uint HELD = TURN != 0 ? QUERIES + 2 : QUERIES;        // heads in shared memory: the queries, own key, own value
layout(push_constant) uniform Push { AttentionArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer Q { float q[]; };
layout(set = 0, binding = 0, std430) readonly buffer Q4 { vec4 q4[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y4 { vec4 y4[]; };
#define STEP_BINDING 2
#define KEYS_BINDING 3
#define VALUES_BINDING 4
#include "step.glsl"
#define CACHE_READS
#include "cache_rows.glsl"
layout(set = 0, binding = 2, std430) readonly buffer Table { float table[]; };
layout(set = 0, binding = 5, std430) readonly buffer Sinks { float sinks[]; };
layout(set = 0, binding = 6, std430) coherent buffer Partials { float partials[]; };
layout(set = 0, binding = 6, std430) coherent buffer Partials4 { vec4 partials4[]; };
// Of work-groups that are done, per group of queries and kv head: zero before and after.
layout(set = 0, binding = 7, std430) coherent buffer Counters { uint counters[]; };
#define HAND_BINDING 8
layout(set = 0, binding = 9, std430) readonly buffer HandGain { vec4 hand_gain4[]; };
layout(set = 0, binding = 10, std430) readonly buffer K { float k[]; };
layout(set = 0, binding = 11, std430) readonly buffer V4 { vec4 v4[]; };
layout(set = 0, binding = 12, std430) readonly buffer QGain { float q_gain[]; };
layout(set = 0, binding = 13, std430) readonly buffer KGain { float k_gain[]; };

shared vec4 queries[HELD * FOURS];       // in the end the results
shared float chances[QUERIES * CHANCES]; // of a tile: by key, then query
shared float tops[QUERIES], totals[QUERIES], corrections[QUERIES];

#define CACHE_KEEPS
#include "cache.glsl"
float turn_sum(float value) { return subgroupAdd(value); }
void put_turned(bool is_key, uint at, float value) { queries[at / 4u][at % 4u] = value; }
const uint TURN_LANES = SUBGROUP;
#include "turn_head.glsl"
#include "attention_parts.glsl"
uint place_of(uint i, uint four) {
    return (query_row(own_query(i)) * args.heads + query_head(own_query(i))) * FOURS + four;
}
void put_result(uint i, uint four, vec4 value) {
    y4[place_of(i, four)] = value;
    if (HAND != 0u) queries[i * FOURS + four] = value;
}
#include "attention_merge.glsl"
vec4 left_values(uint i) { return queries[i]; }
vec4 left_gains(uint i) {
    return args.hand_normed != 0u ? hand_gain4[place_of(i / FOURS, i % FOURS)] : vec4(1.0);
}
#include "leave_row.glsl"
void leave_queries() {
    barrier();
    for (uint i = gl_LocalInvocationID.x; i < QUERIES * FOURS; i += THREADS)
        if (query_row(own_query(i / FOURS)) < end_row()) leave_four(i, place_of(i / FOURS, i % FOURS));
}
#include "handed_halfs.glsl"
layout(set = 0, binding = HAND_BINDING, std430) writeonly buffer HandFours { uvec2 hand_fours[]; };
layout(set = 0, binding = HAND_BINDING, std430) writeonly buffer HandReaches { float hand_reaches[]; };
// A head is a part of its row.
void leave_heads() {
    barrier();
    const uint first_reach = HAND_TOKENS * args.heads * (HEAD_DIM / 2u);
    for (uint i = gl_SubgroupID; i < QUERIES; i += gl_NumSubgroups) {
        const uint row = query_row(own_query(i)), head = query_head(own_query(i));
        if (row >= end_row()) continue;
        float most = 0.0, squares = 0.0;
        for (uint four = gl_SubgroupInvocationID; four < FOURS; four += SUBGROUP) {
            const uint at = head * FOURS + four;
            const vec4 value = queries[i * FOURS + four], gained = args.hand_normed != 0u ? value * hand_gain4[at] : value,
                       size = abs(gained);
            most = max(most, max(max(size.x, size.y), max(size.z, size.w)));
            squares += dot(value, value);
            hand_fours[handed_eight(at / 8u, at / 2u % 4u, row, HAND_TOKENS, HAND_OWNERS) * 2u + at % 2u] =
                handed_four(gained, HAND_UP);
        }
        most = subgroupMax(most);
        squares = subgroupAdd(squares);
        if (subgroupElect()) {
            hand_reaches[first_reach + row * args.heads + head] = most;
            hand_reaches[first_reach + (HAND_TOKENS + row) * args.heads + head] = squares;
        }
    }
}

const uint OWN_FOURS = (FOURS + SUBGROUP - 1) / SUBGROUP;  // of a head, that an invocation has

// Zeros, or the row's own value, which may be normed.
void bring_fours(uint i, bool none) {
    vec4 fours[OWN_FOURS];
    float squares = 0.0;
    [[unroll]] for (uint n = 0; n < OWN_FOURS; ++n) {
        const uint four = min(gl_SubgroupInvocationID + n * SUBGROUP, FOURS - 1u);
        fours[n] = none ? vec4(0.0) : v4[gl_WorkGroupID.z * FOURS + four];
        if (gl_SubgroupInvocationID + n * SUBGROUP < FOURS) squares += dot(fours[n], fours[n]);
    }
    const float scale = args.v_eps > 0.0 ? 1.0 / sqrt(subgroupAdd(squares) / float(HEAD_DIM) + args.v_eps) : 1.0;
    [[unroll]] for (uint n = 0; n < OWN_FOURS; ++n) {
        const uint four = gl_SubgroupInvocationID + n * SUBGROUP;
        if (four < FOURS) queries[i * FOURS + four] = fours[n] * scale;
    }
}

// A subgroup each, the queries are turned; where `has_own`, the row's own key, too, and its value comes.
void turn_heads(bool has_own) {
    for (uint i = gl_SubgroupID; i < (has_own ? QUERIES + 2u : QUERIES); i += gl_NumSubgroups) {
        const bool none = i < QUERIES && query_row(own_query(i)) >= end_row();
        if (none || i > QUERIES)
            bring_fours(i, none);
        else
            turn_head(i == QUERIES, i == QUERIES ? gl_WorkGroupID.z * HEAD_DIM : place_of(i, 0u) * 4u, i * HEAD_DIM, 0u,
                      gl_SubgroupInvocationID);
    }
}

// The row's own key and value become what the cache holds of them. One work-group of a kv head puts them there.
void keep_own() {
    const uint four = gl_LocalInvocationID.x % FOURS, place = QUERIES * FOURS + gl_LocalInvocationID.x;
    const uint token = gl_WorkGroupID.z * args.capacity + stored_row(0u);
    const bool stores = gl_WorkGroupID.y == 0u;
    vec4 kept;
    barrier();
    if (gl_LocalInvocationID.x < 2u * FOURS) {
        float most = 0.0;
        if (kScaled) [[unroll]] for (uint i = 0; i < 8; ++i) {
            const vec4 near = abs(queries[place - four % 8u + i]);
            most = max(most, max(max(near.x, near.y), max(near.z, near.w)));
        }
        if (gl_LocalInvocationID.x < FOURS)
            kept = keep_key4(stores, token, HEAD_DIM, four, queries[place], most);
        else
            kept = keep_value4(stores, token, HEAD_DIM, four, queries[place], most);
    }
    barrier();
    if (gl_LocalInvocationID.x < 2u * FOURS) queries[place] = kept;
}

float score_of(float product) {
    const float score = product * args.scale;
    return args.softcap > 0.0 ? args.softcap * tanh(score / args.softcap) : score;
}

// The row's own key is the first that its queries see, before all tiles.
void attend_own(inout vec4 sums[QUERIES]) {
    keep_own();
    barrier();
    for (uint i = gl_SubgroupID; i < QUERIES; i += gl_NumSubgroups) {
        float sum = 0.0;
        for (uint four = gl_SubgroupInvocationID; four < FOURS; four += SUBGROUP)
            sum += dot(queries[i * FOURS + four], queries[QUERIES * FOURS + four]);
        const float score = score_of(subgroupAdd(sum));
        if (subgroupElect()) {
            tops[i] = score;
            totals[i] = score == kNone ? 0.0 : 1.0;
        }
    }
    barrier();
    if (gl_LocalInvocationID.x >= FOURS) return;
    const vec4 value = queries[(QUERIES + 1u) * FOURS + gl_LocalInvocationID.x];
    [[unroll]] for (uint i = 0; i < QUERIES; ++i) sums[i] = tops[i] == kNone ? vec4(0.0) : value;
}

uint cache_place(uint key) { return gl_WorkGroupID.z * args.capacity + row_of(key); }
bool sees_key(uint query, uint key) { return sees(query, key); }
#include "few_tiles.glsl"

void main() {
    const uint tid = gl_LocalInvocationID.x;
    if (query_row(own_query(0u)) >= end_row()) return;
#ifdef CACHE_COUNTED
    cache_tokens = args.kv_heads * args.capacity;
#endif
    const uint last_row = min(query_row(own_query(QUERIES - 1u)), end_row() - 1u);
    const uint end = first_position() + last_row + 1u;
    const uint begin = first_seen(first_position() + query_row(own_query(0u)) + 1u), count = end - begin;
    begin_keys(query_row(own_query(0u)), begin);
    // Two splits of the least keys are not worth bringing together.
    const uint wanted = count <= 2u * LEAST_KEYS ? 1u : min((count + LEAST_KEYS - 1u) / LEAST_KEYS, args.splits);
    const uint share = ((count + wanted - 1u) / wanted + 31u) / 32u * 32u, used = (count + share - 1u) / share;
    if (gl_WorkGroupID.x >= used) return;
    const uint from = begin + gl_WorkGroupID.x * share, to = min(from + share, end);
    const bool has_own = TURN != 0u && to == end;
    const uint cached = has_own ? to - 1u : to;
    if (from < cached) fetch_tile(from, cached);  // on its way while heads are turned
    if (TURN != 0u) turn_heads(has_own);
    for (uint i = tid; TURN == 0u && i < QUERIES * FOURS; i += THREADS)
        queries[i] = query_row(own_query(i / FOURS)) < end_row() ? q4[place_of(i / FOURS, i % FOURS)] : vec4(0.0);
    for (uint i = tid; i < QUERIES; i += THREADS) {
        tops[i] = kNone;
        totals[i] = 0.0;
    }
    vec4 sums[QUERIES];
    [[unroll]] for (uint i = 0; i < QUERIES; ++i) sums[i] = vec4(0.0);
    if (has_own) attend_own(sums);
    for (uint base = from; base < cached; base += KEYS) {
        attend_tile(base, cached, sums);
        if (base + KEYS < cached) fetch_tile(base + KEYS, cached);
    }
    put_sums(used, sums);
    if (used > 1u) {
        if (!last_of(used)) return;
        merge_splits(used);
    }
    if (HAND == 1u) leave_queries();
    if (HAND == 2u) leave_heads();
}
