// for each cache
// Per-head norms of q and k where given, the rotation of both, and k and v into the cache. A work-group per row
// and head: first those of q, then those of k with their v.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint HEAD_DIM = 128;
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

void main() {
    const uint all = args.heads + args.kv_heads;
    const uint row = gl_WorkGroupID.x / all, index = gl_WorkGroupID.x % all;
    if (row >= step_rows) return;
#ifdef CACHE_Q8_0
    cache_tokens = args.kv_heads * args.capacity;
#endif
    const bool is_key = index >= args.heads;
    source = is_key ? (row * args.kv_heads + index - args.heads) * HEAD_DIM : (row * args.heads + index) * HEAD_DIM;
    const bool normed = is_key ? args.k_norm != 0u : args.q_norm != 0u;
    float squares = 0.0;
    for (uint i = gl_LocalInvocationID.x; i < HEAD_DIM; i += gl_WorkGroupSize.x) {
        const float x = is_key ? k[source + i] : q[source + i];
        head[i] = x;
        squares += x * x;
    }
    if (normed) {
        const float eps = is_key ? args.k_eps : args.q_eps;
        const float scale = 1.0 / sqrt(group_sum(squares) / float(HEAD_DIM) + eps);
        for (uint i = gl_LocalInvocationID.x; i < HEAD_DIM; i += gl_WorkGroupSize.x)
            head[i] = head[i] * scale * (is_key ? k_gain[i] : q_gain[i]);
    }
    barrier();
    for (uint pair = gl_LocalInvocationID.x; pair < args.pairs; pair += gl_WorkGroupSize.x) {
        const uint a = args.half_split != 0u ? pair : 2u * pair;
        const uint b = args.half_split != 0u ? a + args.pairs : a + 1u;
        const uint at = args.table + row * 2u * args.pairs + pair;
        const float c = table[at], s = table[at + args.pairs], xa = head[a], xb = head[b];
        head[a] = xa * c - xb * s;
        head[b] = xa * s + xb * c;
    }
    barrier();
    // The turned head is also what the slot holds afterwards, as the op says.
    for (uint i = gl_LocalInvocationID.x; i < HEAD_DIM; i += gl_WorkGroupSize.x) {
        if (is_key)
            k[source + i] = head[i];
        else
            q[source + i] = head[i];
    }
    if (!is_key) return;
    const uint token = (index - args.heads) * args.capacity + step_position + row;
    for (uint i = gl_LocalInvocationID.x * kStoreGroup; i < HEAD_DIM; i += gl_WorkGroupSize.x * kStoreGroup)
        store_group(token, HEAD_DIM, i);
}
