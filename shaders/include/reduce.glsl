// Sums over a work-group, for any subgroup size. Every invocation gets the sum.
shared float reduce_parts[256];

float group_sum(float value) {
    const float part = subgroupAdd(value);
    barrier();  // the last use of the array is over
    if (subgroupElect()) reduce_parts[gl_SubgroupID] = part;
    barrier();
    float sum = 0.0;
    for (uint i = 0; i < gl_NumSubgroups; ++i) sum += reduce_parts[i];
    return sum;
}

float group_max(float value) {
    const float part = subgroupMax(value);
    barrier();
    if (subgroupElect()) reduce_parts[gl_SubgroupID] = part;
    barrier();
    float most = reduce_parts[0];
    for (uint i = 1; i < gl_NumSubgroups; ++i) most = max(most, reduce_parts[i]);
    return most;
}
