// for each cache of latents
// cache[row of the token] = latent, then key; of a block its last token's alone. A work-group per row.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint STEP_KIND = RL_STEP_ALONE;
layout(push_constant) uniform Push { LatentStoreArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer Latent { float latent[]; };
layout(set = 0, binding = 1, std430) readonly buffer K { float k[]; };
#define STEP_BINDING 2
#define KEYS_BINDING 3
#define VALUES_BINDING 3
#include "step.glsl"
#include "cache_rows.glsl"
uint source;  // row of the step
float new_key(uint i) {
    return i < args.rank ? latent[source * args.rank + i] : k[source * (args.width - args.rank) + i - args.rank];
}
#define CACHE_STORES
#define CACHE_OF_LATENTS
#include "cache.glsl"

void main() {
#ifdef CACHE_COUNTED
    cache_tokens = args.capacity;
#endif
    for (source = gl_WorkGroupID.x; source < step_rows; source += gl_NumWorkGroups.x) {
        const uint position = STEP_KIND == RL_STEP_ALONE ? step_position + source : step_word(step_places + 2u * source);
        if ((position + 1u) % args.ratio != 0u) continue;
        const uint token = stored_row(source) / args.ratio;
        for (uint i = gl_LocalInvocationID.x * kStoreGroup; i < args.width; i += gl_WorkGroupSize.x * kStoreGroup)
            store_key_group(token, args.width, i);
    }
}
