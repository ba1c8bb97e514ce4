// Sums over a work-group, for any subgroup size. Every invocation gets the sum.
shared float reduce_parts[256];

float group_sum(float value) {
    const float part = subgroupAdd(value);
    barrier();  // the last use of the array is over
    if (subgroupElect()) reduce_parts[gl_SubgroupID] = part;
    barrier();
    float sum = 0.0;
    for (uint i = gl_SubgroupInvocationID; i < gl_NumSubgroups; i += gl_SubgroupSize) sum += reduce_parts[i];
    return subgroupAdd(sum);
}

#ifdef REDUCES_TWO
shared vec2 reduce_pairs[128];

vec2 group_sums(vec2 values) {
    const vec2 part = subgroupAdd(values);
    barrier();
    if (subgroupElect()) reduce_pairs[gl_SubgroupID] = part;
    barrier();
    vec2 sums = vec2(0.0);
    for (uint i = gl_SubgroupInvocationID; i < gl_NumSubgroups; i += gl_SubgroupSize) sums += reduce_pairs[i];
    return subgroupAdd(sums);
}
#endif

#ifdef REDUCES_SUM_AND_MAX
shared vec2 reduce_both[128];

// The sum of the first, and the largest of the second.
vec2 group_sum_and_max(float sum, float most) {
    const vec2 part = vec2(subgroupAdd(sum), subgroupMax(most));
    barrier();
    if (subgroupElect()) reduce_both[gl_SubgroupID] = part;
    barrier();
    vec2 all = vec2(0.0, reduce_both[0].y);
    for (uint i = gl_SubgroupInvocationID; i < gl_NumSubgroups; i += gl_SubgroupSize)
        all = vec2(all.x + reduce_both[i].x, max(all.y, reduce_both[i].y));
    return vec2(subgroupAdd(all.x), subgroupMax(all.y));
}
#endif

float group_max(float value) {
    const float part = subgroupMax(value);
    barrier();
    if (subgroupElect()) reduce_parts[gl_SubgroupID] = part;
    barrier();
    float most = reduce_parts[0];
    for (uint i = gl_SubgroupInvocationID; i < gl_NumSubgroups; i += gl_SubgroupSize) most = max(most, reduce_parts[i]);
    return subgroupMax(most);
}
