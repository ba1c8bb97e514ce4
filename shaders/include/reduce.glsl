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
