// Merges the partial results of attention.comp's splits. A work-group per row and head.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint HEAD_DIM = 128;
layout(push_constant) uniform Push { AttentionArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer Partials { float partials[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { float y[]; };
#define STEP_BINDING 2
#include "step.glsl"
layout(set = 0, binding = 3, std430) readonly buffer Sinks { float sinks[]; };

layout(constant_id = 2) const uint SPLITS = 32;
layout(constant_id = 3) const uint STEP_KIND = RL_STEP_ALONE;  // or of a mixed step those that are in tiles
shared float tops[SPLITS], totals[SPLITS], factors[SPLITS];

void main() {
    const uint row = args.first_row + gl_WorkGroupID.x / args.heads, head = gl_WorkGroupID.x % args.heads;
    if (row >= step_rows || (STEP_KIND == RL_STEP_MIXED && row < step_lone_rows)) return;
    const uint stride = HEAD_DIM + 2u, first = (row * args.heads + head) * SPLITS * stride;
    const float kNone = -1.0 / 0.0;
    for (uint s = gl_LocalInvocationID.x; s < SPLITS; s += gl_WorkGroupSize.x) {
        tops[s] = partials[first + s * stride];
        totals[s] = partials[first + s * stride + 1u];
    }
    barrier();
    float most = args.has_sinks != 0u ? sinks[head] : kNone;
    [[unroll]] for (uint s = 0; s < SPLITS; ++s) most = max(most, tops[s]);
    for (uint s = gl_LocalInvocationID.x; s < SPLITS; s += gl_WorkGroupSize.x)
        factors[s] = tops[s] == kNone ? 0.0 : exp(tops[s] - most);
    barrier();
    float total = args.has_sinks != 0u ? exp(sinks[head] - most) : 0.0;
    [[unroll]] for (uint s = 0; s < SPLITS; ++s) total += factors[s] * totals[s];
    for (uint d = gl_LocalInvocationID.x; d < HEAD_DIM; d += gl_WorkGroupSize.x) {
        float sum = 0.0;
        // Splits without keys wrote zeros: no branch, so that the loads overlap.
        [[unroll]] for (uint s = 0; s < SPLITS; ++s) sum += factors[s] * partials[first + s * stride + 2u + d];
        y[(row * args.heads + head) * HEAD_DIM + d] = sum / total;
    }
}
