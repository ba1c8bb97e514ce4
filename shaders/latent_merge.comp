// Brings the splits of latent_attention.comp together: y over queries (row, head), x over WIDE fours of a value each, which
// TURNS invocations share by splits. Where a query's group used one split its result is there already.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 128;
layout(constant_id = 1) const uint RANK = 512;
layout(constant_id = 2) const uint QUERIES = 8;  // of a group
layout(constant_id = 3) const uint STEP_KIND = RL_STEP_ALONE;
layout(constant_id = 4) const uint SPLITS = 64;  // at most
const uint FOURS = (RANK + 3) / 4;
const uint WIDE = 32, TURNS = THREADS / WIDE;
const uint LOADS = 8;  // on their way
layout(push_constant) uniform Push { AttentionArgs args; };
layout(set = 0, binding = 0, std430) writeonly buffer Y { float y[]; };
layout(set = 0, binding = 0, std430) writeonly buffer Y4 { vec4 y4[]; };
#define STEP_BINDING 1
#include "step.glsl"
layout(set = 0, binding = 2, std430) readonly buffer Partials { float partials[]; };
layout(set = 0, binding = 2, std430) readonly buffer Partials4 { vec4 partials4[]; };

#define GROUP args.heads
#include "attention_parts.glsl"
#include "latent_splits.glsl"

shared float factors[SPLITS];
shared vec4 sums[THREADS];

void main() {
    const uint query = gl_WorkGroupID.y, tid = gl_LocalInvocationID.x;
    if (query_row(query) >= step_rows) return;
    const uint used = splits_of(BY_ROW ? query : query / QUERIES * QUERIES).used;
    if (used == 1u) return;

    // Each subgroup finds by itself what all share.
    const uint stats = args.first_stat + 2u * partial_of(query, 0u);
    float most = kNone, total = 0.0;
    for (uint s = gl_SubgroupInvocationID; s < used; s += gl_SubgroupSize) most = max(most, partials[stats + 2u * s]);
    most = subgroupMax(most);
    for (uint s = gl_SubgroupInvocationID; s < used; s += gl_SubgroupSize) {
        const float top = partials[stats + 2u * s], factor = top == kNone ? 0.0 : exp(top - most);
        if (gl_SubgroupID == 0u) factors[s] = factor;
        total += factor * partials[stats + 2u * s + 1u];
    }
    total = subgroupAdd(total);
    barrier();

    const uint four = gl_WorkGroupID.x * WIDE + tid % WIDE, first = partial_of(query, 0u) * FOURS + min(four, FOURS - 1u);
    vec4 sum = vec4(0.0);
    for (uint base = tid / WIDE; base < used; base += TURNS * LOADS) {
        // Without branches, so that the loads overlap.
        vec4 v[LOADS];
        [[unroll]] for (uint n = 0; n < LOADS; ++n) v[n] = partials4[first + min(base + n * TURNS, used - 1u) * FOURS];
        [[unroll]] for (uint n = 0; n < LOADS; ++n)
            if (base + n * TURNS < used) sum += factors[base + n * TURNS] * v[n];
    }
    sums[tid] = sum;
    barrier();
    if (tid >= WIDE || four >= FOURS) return;
    [[unroll]] for (uint n = 1; n < TURNS; ++n) sum += sums[n * WIDE + tid];
    sum /= total;
    if (RANK % 4u == 0u) {
        y4[query * FOURS + four] = sum;
        return;
    }
    [[unroll]] for (uint e = 0; e < 4; ++e)
        if (four * 4u + e < RANK) y[query * RANK + four * 4u + e] = sum[e];
}
