// for each cache
// Causal attention in f32, for heads of any size: y[row][head] = sum over keys of softmax(scale * q . k) * v, capped and
// windowed as the arguments say. A work-group takes QUERIES queries (row, head) that share a kv head, and one of up to
// `splits` shares of the keys: x over splits, y over groups of queries, z over kv heads. One key per invocation
// for the scores, one dimension per invocation for the values; the maximum is kept running over tiles of THREADS keys.
// Shared memory: QUERIES queries, and their weights of a tile's keys. Values are summed key by key in order, in KEY_GROUPS
// interleaved sums where heads are smaller than the work-group. Each key is read once for QUERIES queries.
// With one split the result goes to y, else maximum, sum and weighted values go to `partials`, and the work-group
// that is the last of a query's splits merges them.
#include "types.glsl"
#extension GL_KHR_shader_subgroup_arithmetic : require
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 128;
layout(constant_id = 1) const uint HEAD_DIM = 128;
layout(constant_id = 2) const uint QUERIES = 4;
const uint COLUMNS = (HEAD_DIM + THREADS - 1) / THREADS;                 // of one invocation
const uint KEY_GROUPS = HEAD_DIM < THREADS ? THREADS / HEAD_DIM : 1;     // invocations that share a column
// Of a key, at once: they take long to come, but with many queries they would overflow the instruction cache.
const uint LOADS = QUERIES <= 4 ? 16 : 4;
const uint MERGE_LOADS = 8;       // of partial results
const uint CHANCES = THREADS;     // room of a query
layout(constant_id = 3) const uint VALUE_LOADS = 4;  // likewise, of values
layout(constant_id = 4) const uint STEP_KIND = RL_STEP_ALONE;
layout(constant_id = 5) const uint GROUP = 4;  // heads that share a kv head
layout(push_constant) uniform Push { AttentionArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer Q { float q[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { float y[]; };
#define STEP_BINDING 2
#define KEYS_BINDING 3
#define VALUES_BINDING 4
#include "step.glsl"
#define CACHE_READS
#include "cache_rows.glsl"
layout(set = 0, binding = 5, std430) readonly buffer Sinks { float sinks[]; };
layout(set = 0, binding = 6, std430) coherent buffer Partials { float partials[]; };
layout(set = 0, binding = 6, std430) coherent buffer Partials4 { vec4 partials4[]; };
// Of work-groups that are done, per group of queries and kv head: zero before and after.
layout(set = 0, binding = 7, std430) coherent buffer Counters { uint counters[]; };
#include "cache.glsl"

const uint FOURS = (HEAD_DIM + 3u) / 4u;  // of weighted values
shared float queries[QUERIES * HEAD_DIM];
shared float chances[QUERIES * THREADS];
shared float tops[QUERIES], totals[QUERIES], corrections[QUERIES];

#include "attention_parts.glsl"
void put_result(uint i, uint four, vec4 value) {
    const uint at = (query_row(own_query(i)) * args.heads + query_head(own_query(i))) * HEAD_DIM + four * 4u;
    [[unroll]] for (uint e = 0; e < 4; ++e)
        if (four * 4u + e < HEAD_DIM) y[at + e] = value[e];
}
#include "attention_merge.glsl"

void score_tile(uint base, uint end) {
    const uint tid = gl_LocalInvocationID.x, key = base + tid;
    const uint token = gl_WorkGroupID.z * args.capacity + row_of(key);
    float scores[QUERIES];
    [[unroll]] for (uint i = 0; i < QUERIES; ++i) scores[i] = 0.0;
    if (key < end) {
        if (HEAD_DIM % 4u == 0u) {
            for (uint first = 0; first < HEAD_DIM / 4u; first += LOADS) {
                vec4 k[LOADS];
                [[unroll]] for (uint e = 0; e < LOADS; ++e) k[e] = key4_at(token, HEAD_DIM, min(first + e, HEAD_DIM / 4u - 1u));
                [[unroll]] for (uint e = 0; e < LOADS; ++e) {
                    if (first + e >= HEAD_DIM / 4u) break;
                    [[unroll]] for (uint i = 0; i < QUERIES; ++i) {
                        const uint at = i * HEAD_DIM + (first + e) * 4u;
                        scores[i] += k[e].x * queries[at] + k[e].y * queries[at + 1u] + k[e].z * queries[at + 2u] +
                                     k[e].w * queries[at + 3u];
                    }
                }
            }
        } else {
            for (uint d = 0; d < HEAD_DIM; ++d) {
                const float k = key_at(token, HEAD_DIM, d);
                [[unroll]] for (uint i = 0; i < QUERIES; ++i) scores[i] += k * queries[i * HEAD_DIM + d];
            }
        }
    }
    [[unroll]] for (uint i = 0; i < QUERIES; ++i) {
        float score = scores[i] * args.scale;
        if (args.softcap > 0.0) score = args.softcap * tanh(score / args.softcap);
        chances[i * THREADS + tid] = key < end && sees(own_query(i), key) ? score : kNone;
    }
}

// Turns the tile's scores into weights under the running maximum.
void weigh_tile() {
    for (uint i = gl_SubgroupID; i < QUERIES; i += gl_NumSubgroups) {
        float top = kNone;
        for (uint t = gl_SubgroupInvocationID; t < THREADS; t += gl_SubgroupSize) top = max(top, chances[i * THREADS + t]);
        const float before = tops[i], now = max(before, subgroupMax(top));
        float sum = 0.0;
        for (uint t = gl_SubgroupInvocationID; t < THREADS; t += gl_SubgroupSize) {
            const float score = chances[i * THREADS + t];
            // Nothing seen yet: infinity minus infinity must not become NaN, a NaN score must stay one.
            const float p = score == kNone ? 0.0 : exp(score - now);
            chances[i * THREADS + t] = p;
            sum += p;
        }
        // The sum depends on what every lane read of `tops`, so the write below comes after. No subgroupBarrier: not
        // all subgroups come here, and lavapipe 26 makes it one of the whole work-group.
        sum = subgroupAdd(sum);
        if (subgroupElect()) {
            corrections[i] = before == kNone ? 0.0 : exp(before - now);
            tops[i] = now;
            totals[i] = totals[i] * corrections[i] + sum;
        }
    }
}

void main() {
    const uint tid = gl_LocalInvocationID.x, kv_head = gl_WorkGroupID.z, first_query = own_query(0u);
    if (query_row(first_query) >= end_row()) return;
#ifdef CACHE_COUNTED
    cache_tokens = args.kv_heads * args.capacity;
#endif
    const uint last_row = min(query_row(first_query + QUERIES - 1u), end_row() - 1u);
    const uint end = first_position() + last_row + 1u;
    const uint begin = first_seen(first_position() + query_row(first_query) + 1u);
    begin_keys(query_row(first_query), begin);
    // Never more splits than `splits`, and none without keys.
    const uint wanted = clamp((end - begin + LEAST_KEYS - 1u) / LEAST_KEYS, 1u, args.splits);
    const uint share = ((end - begin + wanted - 1u) / wanted + 31u) / 32u * 32u;
    const uint used = (end - begin + share - 1u) / share;
    if (gl_WorkGroupID.x >= used) return;
    const uint from = begin + gl_WorkGroupID.x * share, to = min(from + share, end);

    for (uint i = tid; i < QUERIES * HEAD_DIM; i += THREADS) {
        const uint query = first_query + i / HEAD_DIM, row = query_row(query);
        queries[i] = row < end_row() ? q[(row * args.heads + query_head(query)) * HEAD_DIM + i % HEAD_DIM] : 0.0;
    }
    for (uint i = tid; i < QUERIES; i += THREADS) {
        tops[i] = kNone;
        totals[i] = 0.0;
    }
    const uint column = tid % (HEAD_DIM < THREADS ? HEAD_DIM : THREADS), key_group = tid / (HEAD_DIM < THREADS ? HEAD_DIM : THREADS);
    float sums[COLUMNS * QUERIES];
    [[unroll]] for (uint i = 0; i < COLUMNS * QUERIES; ++i) sums[i] = 0.0;
    for (uint base = from; base < to; base += THREADS) {
        barrier();
        score_tile(base, to);
        barrier();
        weigh_tile();
        barrier();
        const uint count = min(THREADS, to - base);
        [[unroll]] for (uint c = 0; c < COLUMNS; ++c) {
            const uint d = column + c * THREADS;
            [[unroll]] for (uint i = 0; i < QUERIES; ++i) sums[c * QUERIES + i] *= corrections[i];
            if (d >= HEAD_DIM) continue;
            for (uint j = key_group; j < count && key_group < KEY_GROUPS; j += KEY_GROUPS * VALUE_LOADS) {
                float v[VALUE_LOADS];
                [[unroll]] for (uint e = 0; e < VALUE_LOADS; ++e)
                    v[e] = value_at(kv_head * args.capacity + row_of(base + min(j + e * KEY_GROUPS, count - 1u)), HEAD_DIM, d);
                [[unroll]] for (uint e = 0; e < VALUE_LOADS; ++e) {
                    if (j + e * KEY_GROUPS >= count) break;
                    [[unroll]] for (uint i = 0; i < QUERIES; ++i)
                        sums[c * QUERIES + i] += chances[i * THREADS + j + e * KEY_GROUPS] * v[e];
                }
            }
        }
    }
    // Columns shared by several invocations are summed through `chances`, one query after another.
    barrier();
    if (KEY_GROUPS > 1u) {
        [[unroll]] for (uint i = 0; i < QUERIES; ++i) chances[i * THREADS + tid] = sums[i];
        barrier();
        if (key_group == 0u)
            [[unroll]] for (uint i = 0; i < QUERIES; ++i)
                for (uint g = 1; g < KEY_GROUPS; ++g) sums[i] += chances[i * THREADS + g * HEAD_DIM + column];
    }
    [[unroll]] for (uint i = 0; i < QUERIES; ++i) {
        const uint query = own_query(i), row = query_row(query), head = query_head(query);
        if (row >= end_row() || key_group > 0u) continue;
        float top = tops[i], total = totals[i], factor = 1.0;
        if (used == 1u && args.has_sinks != 0u) {
            const float most = max(top, sinks[head]);
            factor = exp(top - most);
            total = total * factor + exp(sinks[head] - most);
        }
        [[unroll]] for (uint c = 0; c < COLUMNS; ++c) {
            const uint d = column + c * THREADS;
            if (d >= HEAD_DIM) continue;
            if (used == 1u) {
                y[(row * args.heads + head) * HEAD_DIM + d] = sums[c * QUERIES + i] * factor / total;
                continue;
            }
            const uint partial = partial_of(query, gl_WorkGroupID.x);
            partials[partial * FOURS * 4u + d] = sums[c * QUERIES + i];
            if (d == 0u) {
                partials[args.first_stat + 2u * partial] = top;
                partials[args.first_stat + 2u * partial + 1u] = total;
            }
        }
    }
    if (used > 1u && last_of(used)) merge_splits(used);
}
