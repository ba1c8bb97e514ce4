// Sorts a step's entries (token, place) by the expert they are for: `order` gets their numbers, ascending within an
// expert; `tiles`, all args.most_tiles of them, each up to BN entries of one expert: expert, first in `order`, how many,
// none for some. A work-group per expert looks at all entries, so that none waits for another.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint BN = 64;
layout(push_constant) uniform Push { GroupArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer Ids { int ids[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Tiles { uvec4 tiles[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Order { uint order[]; };
#define STEP_BINDING 3
#include "step.glsl"
shared uvec2 parts[64];  // of a subgroup each

// An id that is no expert (the router saw NaN) counts as expert 0, whose NaN scale carries the trouble on.
uint expert_of(uint entry) {
    const uint id = uint(ids[entry]);
    return id < args.experts ? id : 0u;
}

// Where the tiles of experts from `expert` on begin, when so many entries are for those before: no expert needs the
// tiles of the next, however the entries are spread.
uint first_tile(uint expert, uint entries) { return expert < args.experts ? entries / BN + expert : args.most_tiles; }

void main() {
    const uint expert = args.first_expert + gl_WorkGroupID.x, threads = gl_WorkGroupSize.x;
    // In the order in which sums over subgroups have it.
    const uint lane = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
    const uint entries = step_rows * args.used, each = (entries + threads - 1u) / threads;
    const uint begin = min(lane * each, entries), end = min(begin + each, entries);
    uvec2 found = uvec2(0u);  // entries of this expert, of those before it
    for (uint i = begin; i < end; ++i) {
        const uint e = expert_of(i);
        found += uvec2(e == expert ? 1u : 0u, e < expert ? 1u : 0u);
    }
    const uvec2 part = subgroupAdd(found);
    uint at = subgroupExclusiveAdd(found.x);
    if (subgroupElect()) parts[gl_SubgroupID] = part;
    barrier();
    uvec2 all = uvec2(0u);
    for (uint s = 0; s < gl_NumSubgroups; ++s) {
        if (s < gl_SubgroupID) at += parts[s].x;
        all += parts[s];
    }
    at += all.y;
    for (uint i = begin; i < end; ++i)
        if (expert_of(i) == expert) order[at++] = i;
    const uint first = first_tile(expert, all.y), next = first_tile(expert + 1u, all.y + all.x);
    for (uint t = lane; t < next - first; t += threads)
        tiles[first + t] = uvec4(expert, all.y + t * BN, min(BN, all.x - min(t * BN, all.x)), 0u);
}
