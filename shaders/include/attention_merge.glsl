// How the splits' results of a query come together, in the work-group that is done last. Wants attention_parts.glsl,
// partials[] and partials4[], counters[], sinks[], `chances` with CHANCES of a query, FOURS, MERGE_LOADS, THREADS, and
// put_result(i, four, value): elements 4 * four .. 4 * four + 3 of this work-group's query i.
const uint MOST_SPLITS = CHANCES / 2u;  // factors and totals of a query share `chances`
shared bool is_last;

// True in the work-group that comes here last of `used`: it sees what the others wrote to `partials`.
bool last_of(uint used) {
    memoryBarrierBuffer();
    barrier();
    if (gl_LocalInvocationID.x == 0u) {
        const uint before = BY_ROW ? args.first_row * ((GROUP + QUERIES - 1u) / QUERIES)
                                                         : args.first_row * GROUP / QUERIES;
        const uint group = before + gl_WorkGroupID.y;
        const uint at = group * args.kv_heads + gl_WorkGroupID.z;
        is_last = atomicAdd(counters[at], 1u) == used - 1u;
        if (is_last) counters[at] = 0u;
        memoryBarrierBuffer();
    }
    barrier();
    memoryBarrierBuffer();
    return is_last;
}

// Weights of the splits of each query, by which their sums become the result.
void weigh_splits(uint used) {
    for (uint i = gl_SubgroupID; i < QUERIES; i += gl_NumSubgroups) {
        if (query_row(own_query(i)) >= end_row()) continue;
        float most = args.has_sinks != 0u ? sinks[query_head(own_query(i))] : kNone;
        const float sink = most;
        for (uint s = gl_SubgroupInvocationID; s < used; s += gl_SubgroupSize) {
            const uint stat = args.first_stat + 2u * partial_of(own_query(i), s);
            chances[i * CHANCES + s] = partials[stat];
            chances[i * CHANCES + MOST_SPLITS + s] = partials[stat + 1u];
            most = max(most, chances[i * CHANCES + s]);
        }
        most = subgroupMax(most);
        float total = 0.0;
        for (uint s = gl_SubgroupInvocationID; s < used; s += gl_SubgroupSize) {
            const float top = chances[i * CHANCES + s], factor = top == kNone ? 0.0 : exp(top - most);
            chances[i * CHANCES + s] = factor;
            total += factor * chances[i * CHANCES + MOST_SPLITS + s];
        }
        total = subgroupAdd(total);
        if (args.has_sinks != 0u) total += exp(sink - most);
        for (uint s = gl_SubgroupInvocationID; s < used; s += gl_SubgroupSize) chances[i * CHANCES + s] /= total;
    }
}

void merge_splits(uint used) {
    weigh_splits(used);
    barrier();
    for (uint t = gl_LocalInvocationID.x; t < QUERIES * FOURS; t += THREADS) {
        const uint i = t / FOURS, query = own_query(i);
        if (query_row(query) >= end_row()) continue;
        const uint first = partial_of(query, 0u) * FOURS + t % FOURS;
        vec4 sum = vec4(0.0);
        for (uint base = 0; base < used; base += MERGE_LOADS) {
            // Without branches, so that the loads overlap.
            vec4 v[MERGE_LOADS];
            [[unroll]] for (uint e = 0; e < MERGE_LOADS; ++e) v[e] = partials4[first + min(base + e, used - 1u) * FOURS];
            [[unroll]] for (uint e = 0; e < MERGE_LOADS; ++e)
                if (base + e < used) sum += chances[i * CHANCES + base + e] * v[e];
        }
        put_result(i, t % FOURS, sum);
    }
}
