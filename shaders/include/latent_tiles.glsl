// How a work-group of QUERIES queries goes over tiles of latents. Scores come in cells of 4 keys and up to 4 queries, whose
// rows SLICES invocations share; of the weighted values an invocation has four elements of every query, over every TURNS-th
// key. So what is read of the cache serves all queries, and each load several products. Sums in f32; the maximum is kept
// running over tiles of keys. With one split the result goes to y, else as in attention.comp to `partials`, which the last
// work-group merges, or with MERGED_APART latent_merge.comp. Wants what latent_constants.glsl and attention_parts.glsl have,
// q, y, y4, and: begin_tile(first key, end), place_of(key), latent4(place, four), sees_key(query, key).
shared vec4 queries[QUERIES * KEY_FOURS];
shared vec4 sum_parts[SUMMED * THREADS];
shared float chances[QUERIES * CHANCES];  // of a tile: by key, then query
shared float tops[QUERIES], totals[QUERIES], corrections[QUERIES];

void put_result(uint i, uint four, vec4 value) {
    const uint at = (query_row(own_query(i)) * args.heads + query_head(own_query(i))) * RANK + four * 4u;
    if (RANK % 4u == 0u) {
        y4[at / 4u] = value;
        return;
    }
    [[unroll]] for (uint e = 0; e < 4; ++e)
        if (four * 4u + e < RANK) y[at + e] = value[e];
}
#ifndef MERGED_APART
#include "attention_merge.glsl"
#endif

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
    [[unroll]] for (uint e = 0; e < CELL_KEYS; ++e) rows[e] = place_of(min(first_key + e, end - 1u));
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
            const float score = base + t < end && sees_key(own_query(i), base + t) ? chances[t * QUERIES + i] : kNone;
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
            [[unroll]] for (uint n = 0; n < VALUE_LOADS; ++n) v[n] = latent4(place_of(base + min(t + n * TURNS, count - 1u)), four);
            [[unroll]] for (uint n = 0; n < VALUE_LOADS; ++n) {
                if (t + n * TURNS >= count) break;
                [[unroll]] for (uint i = 0; i < QUERIES; ++i)
                    sums[c * QUERIES + i] += chances[(t + n * TURNS) * QUERIES + i] * v[n];
            }
        }
    }
}

// What sums of weighted values are multiplied with to be the result.
float result_factor(uint i) {
    if (args.has_sinks == 0u) return 1.0 / totals[i];
    const float sink = sinks[query_head(own_query(i))], most = max(tops[i], sink), down = exp(tops[i] - most);
    return down / (totals[i] * down + exp(sink - most));
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
                    put_result(i, four, sum * result_factor(i));
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

// What the work-group's queries see of keys [from, to), and what becomes of it where so many splits are used.
void attend_to_keys(uint from, uint to, uint used) {
    load_queries();
    for (uint i = gl_LocalInvocationID.x; i < QUERIES; i += THREADS) {
        tops[i] = kNone;
        totals[i] = 0.0;
    }
    vec4 sums[SUMS];
    [[unroll]] for (uint i = 0; i < SUMS; ++i) sums[i] = vec4(0.0);
    for (uint base = from; base < to; base += KEYS) {
        barrier();  // queries are there, and the tile before is done
        begin_tile(base, to);
        score_tile(base, to);
        barrier();
        weigh_tile(base, to);
        barrier();
        add_values(base, to, sums);
    }
    put_sums(used, sums);
#ifndef MERGED_APART
    if (used > 1u && last_of(used)) merge_splits(used);
#endif
}
