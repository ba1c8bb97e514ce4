// Tiles of keys for few queries, whose loads are side by side: four invocations share a key, and a tile's keys and values are
// all on their way before one is used. Wants few_sizes.glsl, cache.glsl, attention_parts.glsl, attention_merge.glsl and
//   float score_of(float product);
//   uint cache_place(uint key);             where a key lies in the cache
//   bool sees_key(uint query, uint key);
shared vec4 quarters[QUERIES * KEYS];  // of scores, by the invocations that share a key
shared vec4 summed[SUMMED * THREADS];

// Turns the tile's scores into weights under the running maximum.
void weigh_tile(uint base, uint end) {
    for (uint i = gl_SubgroupID; i < QUERIES; i += gl_NumSubgroups) {
        float top = kNone;
        for (uint t = gl_SubgroupInvocationID; t < KEYS; t += gl_SubgroupSize) {
            float score = score_of(dot(quarters[i * KEYS + t], vec4(1.0)));
            score = base + t < end && sees_key(own_query(i), base + t) ? score : kNone;
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

// Of the tile that is next: an invocation's share of the keys and of the values.
vec4 tile_keys[PIECES], tile_values[VALUES];

void fetch_tile(uint base, uint end) {
    const uint tid = gl_LocalInvocationID.x, part = tid % 4u, column = tid % FOURS, turn = tid / FOURS;
    const uint key = cache_place(min(base + tid / 4u, end - 1u));
    [[unroll]] for (uint e = 0; e < PIECES; ++e) tile_keys[e] = key4_at(key, HEAD_DIM, e * 4u + part);
    [[unroll]] for (uint e = 0; e < VALUES; ++e)
        tile_values[e] = value4_at(cache_place(min(base + e * TURNS + turn, end - 1u)), HEAD_DIM, column);
}

// What was fetched last.
void attend_tile(uint base, uint end, inout vec4 sums[QUERIES]) {
    const uint tid = gl_LocalInvocationID.x, part = tid % 4u, turn = tid / FOURS;
    barrier();  // queries are there, and the tile before is done
    [[unroll]] for (uint i = 0; i < QUERIES; ++i) {
        float sum = 0.0;
        [[unroll]] for (uint e = 0; e < PIECES; ++e) sum += dot(tile_keys[e], queries[i * FOURS + e * 4u + part]);
        quarters[i * KEYS + tid / 4u][part] = sum;
    }
    barrier();
    weigh_tile(base, end);
    barrier();
    [[unroll]] for (uint i = 0; i < QUERIES; ++i) sums[i] *= corrections[i];
    [[unroll]] for (uint e = 0; e < VALUES; ++e) {
        const uint t = e * TURNS + turn;
        // Of invocations that have no turn, what they sum up is not used.
        if (VALUES * TURNS > KEYS && t >= KEYS) continue;
        [[unroll]] for (uint i = 0; i < QUERIES; ++i) sums[i] += chances[t * QUERIES + i] * tile_values[e];
    }
}

// The turns' sums come together: with one split they are the result, else they go to `partials`.
void put_sums(uint used, vec4 sums[QUERIES]) {
    const uint tid = gl_LocalInvocationID.x;
    [[unroll]] for (uint first = 0; first < QUERIES; first += SUMMED) {
        barrier();
        [[unroll]] for (uint n = 0; n < SUMMED; ++n) summed[n * THREADS + tid] = sums[first + n];
        barrier();
        for (uint t = tid; t < SUMMED * FOURS; t += THREADS) {
            const uint i = first + t / FOURS, four = t % FOURS;
            if (query_row(own_query(i)) >= end_row()) continue;
            vec4 sum = summed[t / FOURS * THREADS + four];
            [[unroll]] for (uint turn = 1; turn < TURNS; ++turn) sum += summed[t / FOURS * THREADS + turn * FOURS + four];
            float top = tops[i], total = totals[i], factor = 1.0;
            if (used > 1u) {
                const uint partial = partial_of(own_query(i), gl_WorkGroupID.x);
                partials4[partial * FOURS + four] = sum;
                if (four > 0u) continue;
                partials[args.first_stat + 2u * partial] = top;
                partials[args.first_stat + 2u * partial + 1u] = total;
                continue;
            }
            if (args.has_sinks != 0u) {
                const float sink = sinks[query_head(own_query(i))], most = max(top, sink);
                factor = exp(top - most);
                total = total * factor + exp(sink - most);
            }
            put_result(i, four, sum * (factor / total));
        }
    }
}
