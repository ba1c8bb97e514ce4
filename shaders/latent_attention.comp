// for each cache
// Causal attention of all heads on the same rows of latents: a key is a whole row, its value the first RANK elements of
// it. A work-group takes QUERIES queries (row, head) and one of up to `splits` shares of the keys: x over splits, y over
// groups of queries. Scores come in cells of 4 keys and up to 4 queries, whose rows SLICES invocations share; of the
// weighted values an invocation has four elements of every query, over every TURNS-th key. So what is read of the cache
// serves all queries, and each load several products. Sums in f32; the maximum is kept running over tiles of keys.
// With one split the result goes to y, else as in attention.comp to `partials`, which the last work-group merges.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 256;
layout(constant_id = 1) const uint WIDTH = 576;
layout(constant_id = 2) const uint RANK = 512;
layout(constant_id = 3) const uint QUERIES = 8;
layout(constant_id = 4) const uint STEP_KIND = RL_STEP_ALONE;
const uint SLICES = 8;
const uint CELL_KEYS = 4;
const uint CELL_QUERIES = QUERIES < 4 ? QUERIES : 4;
const uint CELLS = THREADS / SLICES;
const uint KEY_CELLS = CELLS * CELL_QUERIES / QUERIES;
const uint KEYS = KEY_CELLS * CELL_KEYS;                // of a tile
const uint KEY_FOURS = (WIDTH + 3) / 4;
const uint FOURS = (RANK + 3) / 4;                      // of a value
const uint WIDE = FOURS < THREADS ? FOURS : THREADS;    // fours of a value that invocations have at a time
const uint COLUMNS = (FOURS + THREADS - 1) / THREADS;   // of one invocation
const uint SUMS = COLUMNS * QUERIES;
const uint TURNS = THREADS / WIDE;
const uint KEY_LOADS = 2, VALUE_LOADS = 8;              // on their way: of each key of a cell, of values
const uint CHANCES = KEYS < 128 ? 128 : KEYS;           // room of a query
const uint SUMMED = QUERIES < 2 ? QUERIES : 2;          // queries whose sums come together at a time
const uint MERGE_LOADS = 8;                             // of partial results
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
layout(set = 0, binding = 5, std430) coherent buffer Partials { float partials[]; };
layout(set = 0, binding = 5, std430) coherent buffer Partials4 { vec4 partials4[]; };
// Of work-groups that are done, per group of queries: zero before and after.
layout(set = 0, binding = 6, std430) coherent buffer Counters { uint counters[]; };
#include "cache.glsl"

shared vec4 queries[QUERIES * KEY_FOURS];
shared vec4 sum_parts[SUMMED * THREADS];
shared float chances[QUERIES * CHANCES];  // of a tile: by key, then query
shared float tops[QUERIES], totals[QUERIES], corrections[QUERIES];

#include "attention_parts.glsl"
void put_result(uint i, uint four, vec4 value) {
    const uint at = (query_row(own_query(i)) * args.heads + query_head(own_query(i))) * RANK + four * 4u;
    if (RANK % 4u == 0u) {
        y4[at / 4u] = value;
        return;
    }
    [[unroll]] for (uint e = 0; e < 4; ++e)
        if (four * 4u + e < RANK) y[at + e] = value[e];
}
#include "attention_merge.glsl"

vec4 latent4(uint row, uint four) {
    if (WIDTH % 4u == 0u) return key4_at(row, WIDTH, four);
    vec4 k = vec4(0.0);
    [[unroll]] for (uint e = 0; e < 4; ++e)
        if (four * 4u + e < WIDTH) k[e] = key_at(row, WIDTH, four * 4u + e);
    return k;
}

void load_queries() {
    for (uint i = gl_LocalInvocationID.x; i < QUERIES * KEY_FOURS; i += THREADS) {
        const uint query = own_query(i / KEY_FOURS), first = i % KEY_FOURS * 4u;
        const uint at = (query_row(query) * args.heads + query_head(query)) * WIDTH + first;
        vec4 four = vec4(0.0);
        [[unroll]] for (uint e = 0; e < 4; ++e)
            if (query_row(query) < end_row() && first + e < WIDTH) four[e] = q[at + e];
        queries[i] = four;
    }
}

// The slices' sums of a cell come together, a few queries of it at a time.
void put_scores(vec4 cell[CELL_QUERIES]) {
    const uint tid = gl_LocalInvocationID.x;
    [[unroll]] for (uint first = 0; first < CELL_QUERIES; first += SUMMED) {
        if (first > 0u) barrier();
        [[unroll]] for (uint n = 0; n < SUMMED; ++n) sum_parts[n * THREADS + tid] = cell[first + n];
        barrier();
        for (uint i = tid; i < SUMMED * CELLS * CELL_KEYS; i += THREADS) {
            const uint e = i % CELL_KEYS, c = i / CELL_KEYS % CELLS, n = i / (CELL_KEYS * CELLS);
            float sum = 0.0;
            [[unroll]] for (uint s = 0; s < SLICES; ++s) sum += sum_parts[n * THREADS + c * SLICES + s][e];
            const uint key = c % KEY_CELLS * CELL_KEYS + e, query = c / KEY_CELLS * CELL_QUERIES + first + n;
            chances[key * QUERIES + query] = sum * args.scale;
        }
    }
}

void score_tile(uint base, uint end) {
    const uint slice = gl_LocalInvocationID.x % SLICES, c = gl_LocalInvocationID.x / SLICES;
    const uint first_query = c / KEY_CELLS * CELL_QUERIES, first_key = base + c % KEY_CELLS * CELL_KEYS;
    uint rows[CELL_KEYS];
    [[unroll]] for (uint e = 0; e < CELL_KEYS; ++e) rows[e] = row_of(min(first_key + e, end - 1u));
    vec4 cell[CELL_QUERIES];  // by key
    [[unroll]] for (uint i = 0; i < CELL_QUERIES; ++i) cell[i] = vec4(0.0);
    for (uint first = slice; first < KEY_FOURS; first += KEY_LOADS * SLICES) {
        vec4 k[KEY_LOADS * CELL_KEYS];
        [[unroll]] for (uint n = 0; n < KEY_LOADS; ++n)
            [[unroll]] for (uint e = 0; e < CELL_KEYS; ++e)
                k[n * CELL_KEYS + e] = latent4(rows[e], min(first + n * SLICES, KEY_FOURS - 1u));
        [[unroll]] for (uint n = 0; n < KEY_LOADS; ++n) {
            const uint four = first + n * SLICES;
            if (four >= KEY_FOURS) break;
            [[unroll]] for (uint i = 0; i < CELL_QUERIES; ++i) {
                const vec4 query = queries[(first_query + i) * KEY_FOURS + four];
                [[unroll]] for (uint e = 0; e < CELL_KEYS; ++e) cell[i][e] += dot(k[n * CELL_KEYS + e], query);
            }
        }
    }
    put_scores(cell);
}

// Turns the tile's scores into weights under the running maximum.
void weigh_tile(uint base, uint end) {
    for (uint i = gl_SubgroupID; i < QUERIES; i += gl_NumSubgroups) {
        float top = kNone;
        for (uint t = gl_SubgroupInvocationID; t < KEYS; t += gl_SubgroupSize) {
            const float score = base + t < end && sees(own_query(i), base + t) ? chances[t * QUERIES + i] : kNone;
            chances[t * QUERIES + i] = score;
            top = max(top, score);
        }
        const float before = tops[i], now = max(before, subgroupMax(top));
        float sum = 0.0;
        for (uint t = gl_SubgroupInvocationID; t < KEYS; t += gl_SubgroupSize) {
            const float score = chances[t * QUERIES + i];
            // Nothing seen yet: infinity minus infinity must not become NaN, a NaN score must stay one.
            const float p = score == kNone ? 0.0 : exp(score - now);
            chances[t * QUERIES + i] = p;
            sum += p;
        }
        // The sum depends on what every lane read of `tops`, so the write below comes after: see attention.comp.
        sum = subgroupAdd(sum);
        if (subgroupElect()) {
            corrections[i] = before == kNone ? 0.0 : exp(before - now);
            tops[i] = now;
            totals[i] = totals[i] * corrections[i] + sum;
        }
    }
}

void add_values(uint base, uint end, inout vec4 sums[SUMS]) {
    const uint turn = gl_LocalInvocationID.x / WIDE, count = min(KEYS, end - base);
    [[unroll]] for (uint c = 0; c < COLUMNS; ++c) {
        const uint four = min(gl_LocalInvocationID.x % WIDE + c * THREADS, FOURS - 1u);
        [[unroll]] for (uint i = 0; i < QUERIES; ++i) sums[c * QUERIES + i] *= corrections[i];
        if (turn >= TURNS) continue;
        for (uint t = turn; t < count; t += TURNS * VALUE_LOADS) {
            vec4 v[VALUE_LOADS];
            [[unroll]] for (uint n = 0; n < VALUE_LOADS; ++n) v[n] = latent4(row_of(base + min(t + n * TURNS, count - 1u)), four);
            [[unroll]] for (uint n = 0; n < VALUE_LOADS; ++n) {
                if (t + n * TURNS >= count) break;
                [[unroll]] for (uint i = 0; i < QUERIES; ++i)
                    sums[c * QUERIES + i] += chances[(t + n * TURNS) * QUERIES + i] * v[n];
            }
        }
    }
}

// The turns' sums come together: with one split they are the result, else they go to `partials`.
void put_sums(uint used, vec4 sums[SUMS]) {
    const uint tid = gl_LocalInvocationID.x;
    [[unroll]] for (uint c = 0; c < COLUMNS; ++c)
        [[unroll]] for (uint first = 0; first < QUERIES; first += SUMMED) {
            barrier();
            [[unroll]] for (uint n = 0; n < SUMMED; ++n) sum_parts[n * THREADS + tid] = sums[c * QUERIES + first + n];
            barrier();
            for (uint t = tid; t < SUMMED * WIDE; t += THREADS) {
                const uint i = first + t / WIDE, own = t / WIDE * THREADS + t % WIDE, four = t % WIDE + c * THREADS;
                if (four >= FOURS || query_row(own_query(i)) >= end_row()) continue;
                vec4 sum = sum_parts[own];
                for (uint turn = 1; turn < TURNS; ++turn) sum += sum_parts[own + turn * WIDE];
                if (used == 1u) {
                    put_result(i, four, sum / totals[i]);
                    continue;
                }
                const uint partial = partial_of(own_query(i), gl_WorkGroupID.x);
                partials4[partial * FOURS + four] = sum;
                if (four > 0u) continue;
                partials[args.first_stat + 2u * partial] = tops[i];
                partials[args.first_stat + 2u * partial + 1u] = totals[i];
            }
        }
}

void main() {
    const uint tid = gl_LocalInvocationID.x;
    if (query_row(own_query(0u)) >= end_row()) return;
#ifdef CACHE_Q8_0
    cache_tokens = args.capacity;
#endif
    const uint last_row = min(query_row(own_query(QUERIES - 1u)), end_row() - 1u), end = first_position() + last_row + 1u;
    begin_keys(query_row(own_query(0u)), 0u);
    // Two splits of the least keys are not worth bringing together.
    const uint wanted = end <= 2u * LEAST_KEYS ? 1u : min((end + LEAST_KEYS - 1u) / LEAST_KEYS, args.splits);
    const uint share = ((end + wanted - 1u) / wanted + 31u) / 32u * 32u, used = (end + share - 1u) / share;
    if (gl_WorkGroupID.x >= used) return;
    const uint from = gl_WorkGroupID.x * share, to = min(from + share, end);
    load_queries();
    for (uint i = tid; i < QUERIES; i += THREADS) {
        tops[i] = kNone;
        totals[i] = 0.0;
    }
    vec4 sums[SUMS];
    [[unroll]] for (uint i = 0; i < SUMS; ++i) sums[i] = vec4(0.0);
    for (uint base = from; base < to; base += KEYS) {
        barrier();  // queries are there, and the tile before is done
        score_tile(base, to);
        barrier();
        weigh_tile(base, to);
        barrier();
        add_values(base, to, sums);
    }
    put_sums(used, sums);
    if (used > 1u && last_of(used)) merge_splits(used);
}
