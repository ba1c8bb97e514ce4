// for each cache
// cache[head][row of the token] = k, v. A work-group per row and kv head.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint STEP_KIND = RL_STEP_ALONE;
layout(push_constant) uniform Push { StoreArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer K { float k[]; };
layout(set = 0, binding = 1, std430) readonly buffer V { float v[]; };
#define STEP_BINDING 2
#define KEYS_BINDING 3
#define VALUES_BINDING 4
#include "step.glsl"
#include "cache_rows.glsl"
uint source;
float new_key(uint i) { return k[source + i]; }
float new_value(uint i) { return v[source + i]; }
#define CACHE_STORES
#include "cache.glsl"

void main() {
#ifdef CACHE_COUNTED
    cache_tokens = args.kv_heads * args.capacity;
#endif
    for (uint n = gl_WorkGroupID.x; n < step_rows * args.kv_heads; n += gl_NumWorkGroups.x) {
        const uint row = n / args.kv_heads, head = n % args.kv_heads;
        source = n * args.head_dim;
        const uint token = head * args.capacity + stored_row(row);
        for (uint i = gl_LocalInvocationID.x * kStoreGroup; i < args.head_dim; i += gl_WorkGroupSize.x * kStoreGroup) {
            store_key_group(token, args.head_dim, i);
            store_value_group(token, args.head_dim, i);
        }
    }
}
