// for each cache
// Per-head norms of q and k where given, the rotation of both, and k and v into the cache. LANES invocations per row
// and head: first heads of q, then those of k with their v.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 128;
layout(constant_id = 1) const uint HEAD_DIM = 128;
layout(constant_id = 2) const uint TURN = RL_TURN_HEADS;
layout(constant_id = 3) const uint LANES = 32;  // one subgroup, or several
layout(constant_id = 4) const uint SUBGROUP = 32;
layout(constant_id = 5) const uint STEP_KIND = RL_STEP_ALONE;
const uint HEADS = THREADS / LANES;       // of a work-group
const uint TOGETHER = LANES / SUBGROUP;  // subgroups that share a head
layout(push_constant) uniform Push { RopeStoreArgs args; };
layout(set = 0, binding = 0, std430) buffer Q { float q[]; };
layout(set = 0, binding = 1, std430) buffer K { float k[]; };
layout(set = 0, binding = 2, std430) readonly buffer V { float v[]; };
#define STEP_BINDING 3
#define KEYS_BINDING 4
#define VALUES_BINDING 5
#include "step.glsl"
#include "cache_rows.glsl"
layout(set = 0, binding = 6, std430) readonly buffer Table { float table[]; };
layout(set = 0, binding = 7, std430) readonly buffer QGain { float q_gain[]; };
layout(set = 0, binding = 8, std430) readonly buffer KGain { float k_gain[]; };
shared float turned_keys[HEADS * HEAD_DIM];
shared float parts[THREADS / SUBGROUP];
uint own, source;  // head among those of the work-group, and its first element
bool real;
float new_key(uint i) { return turned_keys[own * HEAD_DIM + i]; }
float new_value(uint i) { return v[source + i]; }
#define CACHE_STORES
#include "cache.glsl"

float turn_sum(float value) {
    float sum = subgroupAdd(value);
    if (TOGETHER == 1u) return sum;
    if (subgroupElect()) parts[gl_SubgroupID] = sum;
    barrier();
    sum = 0.0;
    [[unroll]] for (uint i = 0; i < TOGETHER; ++i) sum += parts[own * TOGETHER + i];
    return sum;
}
// The turned head is also what the slot holds afterwards, as the op says.
void put_turned(bool is_key, uint at, float value) {
    if (!real) return;
    if (!is_key) {
        q[at] = value;
        return;
    }
    k[at] = value;
    turned_keys[own * HEAD_DIM + at - source] = value;
}
const uint TURN_LANES = LANES;
#include "turn_head.glsl"

void main() {
    const uint all = args.heads + args.kv_heads;
    own = gl_SubgroupID / TOGETHER;
    const uint lane = gl_SubgroupID % TOGETHER * SUBGROUP + gl_SubgroupInvocationID;
#ifdef CACHE_COUNTED
    cache_tokens = args.kv_heads * args.capacity;
#endif
    for (uint first = gl_WorkGroupID.x * HEADS; first < step_rows * all; first += gl_NumWorkGroups.x * HEADS) {
        const uint turn = first + own;
        const uint row = min(turn / all, step_rows - 1u), index = turn % all;
        real = turn / all < step_rows;
        const bool is_key = index >= args.heads;
        source = is_key ? (row * args.kv_heads + index - args.heads) * HEAD_DIM : (row * args.heads + index) * HEAD_DIM;
        turn_head(is_key, source, source, row, lane);
        barrier();
        const uint token = (index - args.heads) * args.capacity + stored_row(row);
        for (uint i = lane * kStoreGroup; is_key && real && i < HEAD_DIM; i += LANES * kStoreGroup) {
            store_key_group(token, HEAD_DIM, i);
            store_value_group(token, HEAD_DIM, i);
        }
        barrier();  // keys of the next heads take their place
    }
}
