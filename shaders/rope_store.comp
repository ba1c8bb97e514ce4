// for each cache
// Per-head norms of q and k where given, the rotation of both, and k and v into the cache. A work-group per row
// and head: first those of q, then those of k with their v.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 128;
layout(constant_id = 1) const uint HEAD_DIM = 128;
layout(constant_id = 2) const uint TURN = RL_TURN_HEADS;
layout(push_constant) uniform Push { RopeStoreArgs args; };
layout(set = 0, binding = 0, std430) buffer Q { float q[]; };
layout(set = 0, binding = 1, std430) buffer K { float k[]; };
layout(set = 0, binding = 2, std430) readonly buffer V { float v[]; };
#define STEP_BINDING 3
#define KEYS_BINDING 4
#define VALUES_BINDING 5
#include "step.glsl"
layout(set = 0, binding = 6, std430) readonly buffer Table { float table[]; };
layout(set = 0, binding = 7, std430) readonly buffer QGain { float q_gain[]; };
layout(set = 0, binding = 8, std430) readonly buffer KGain { float k_gain[]; };
#include "reduce.glsl"
shared float head[HEAD_DIM];
uint source;
float new_key(uint i) { return head[i]; }
float new_value(uint i) { return v[source + i]; }
#define CACHE_STORES
#include "cache.glsl"

float turn_sum(float value) { return group_sum(value); }
// The turned head is also what the slot holds afterwards, as the op says.
void put_turned(bool is_key, uint at, float value) {
    if (!is_key) {
        q[at] = value;
        return;
    }
    k[at] = value;
    head[at - source] = value;
}
const uint TURN_LANES = THREADS;
#include "turn_head.glsl"

void main() {
    const uint all = args.heads + args.kv_heads;
    const uint row = gl_WorkGroupID.x / all, index = gl_WorkGroupID.x % all;
    if (row >= step_rows) return;
#ifdef CACHE_Q8_0
    cache_tokens = args.kv_heads * args.capacity;
#endif
    const bool is_key = index >= args.heads;
    source = is_key ? (row * args.kv_heads + index - args.heads) * HEAD_DIM : (row * args.heads + index) * HEAD_DIM;
    turn_head(is_key, source, source, row, gl_LocalInvocationID.x);
    if (!is_key) return;
    barrier();
    const uint token = (index - args.heads) * args.capacity + step_position + row;
    for (uint i = gl_LocalInvocationID.x * kStoreGroup; i < HEAD_DIM; i += gl_WorkGroupSize.x * kStoreGroup)
        store_group(token, HEAD_DIM, i);
}
