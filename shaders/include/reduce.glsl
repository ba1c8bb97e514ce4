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

float group_max(float value) {
    const float part = subgroupMax(value);
    barrier();
    if (subgroupElect()) reduce_parts[gl_SubgroupID] = part;
    barrier();
    float most = reduce_parts[0];
    for (uint i = gl_SubgroupInvocationID; i < gl_NumSubgroups; i += gl_SubgroupSize) most = max(most, reduce_parts[i]);
    return subgroupMax(most);
}
