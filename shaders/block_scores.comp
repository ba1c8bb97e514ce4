// for each cache
// y[t][b] = the sum over heads of weights[h] * max(q[h] . key of block b, 0), of the complete blocks that t sees, 0 for others.
// The key lies in the row of the block's last token. A work-group per row and stretch of blocks, an invocation per block.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint STEP_KIND = RL_STEP_ALONE;
layout(push_constant) uniform Push { BlockArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer Q { float q[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { float y[]; };
#define STEP_BINDING 2
#define KEYS_BINDING 3
#define VALUES_BINDING 3
#include "step.glsl"
#define CACHE_READS
#include "cache_rows.glsl"
#include "cache.glsl"
layout(set = 0, binding = 4, std430) readonly buffer Weights { float weights[]; };
const uint HEADS = 8;  // for which an element of a key is read once

void score(uint row, uint block) {
    const uint key = row_of((block + 1u) * args.ratio - 1u) / args.row_tokens, first = row * args.heads;
    float sum = 0.0;
    for (uint head = 0; head < args.heads; head += HEADS) {
        uint own[HEADS];
        float products[HEADS];
        [[unroll]] for (uint h = 0; h < HEADS; ++h) {
            own[h] = first + min(head + h, args.heads - 1u);
            products[h] = 0.0;
        }
        for (uint i = 0; i < args.head_dim; ++i) {
            const float element = key_at(key, args.head_dim, i);
            [[unroll]] for (uint h = 0; h < HEADS; ++h) products[h] += q[own[h] * args.head_dim + i] * element;
        }
        [[unroll]] for (uint h = 0; h < HEADS; ++h) {
            const float raised = products[h] < 0.0 ? 0.0 : products[h];  // lets NaN through
            const float weight = args.has_weights != 0u ? weights[own[h]] : 1.0;
            if (head + h < args.heads) sum += weight * raised;
        }
    }
    y[row * args.blocks + block] = sum;
}

void main() {
#ifdef CACHE_Q8_0
    cache_tokens = args.capacity;
#endif
    const uint stretches = (args.blocks + gl_WorkGroupSize.x - 1u) / gl_WorkGroupSize.x;
    const uint end = min(args.end_row, step_rows);
    for (uint n = args.first_row * stretches + gl_WorkGroupID.x; n < end * stretches; n += gl_NumWorkGroups.x) {
        const uint row = n / stretches, block = n % stretches * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
        const uint token = STEP_KIND == RL_STEP_ALONE ? step_position + row : step_word(step_places + 2u * row);
        begin_keys(row, 0u);
        if (block >= args.blocks) continue;
        if (block < (token + 1u) / args.ratio)
            score(row, block);
        else
            y[row * args.blocks + block] = 0.0;
    }
}
