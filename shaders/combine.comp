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

void main() {
    const uint row = args.first_row + gl_WorkGroupID.x / args.heads, head = gl_WorkGroupID.x % args.heads;
    if (row >= step_rows) return;
    const uint stride = HEAD_DIM + 2u, first = (row * args.heads + head) * args.splits * stride;
    const float kNone = -1.0 / 0.0;
    float most = args.has_sinks != 0u ? sinks[head] : kNone;
    for (uint s = 0; s < args.splits; ++s) most = max(most, partials[first + s * stride]);
    float total = args.has_sinks != 0u ? exp(sinks[head] - most) : 0.0;
    for (uint s = 0; s < args.splits; ++s) {
        const float top = partials[first + s * stride];
        if (top != kNone) total += exp(top - most) * partials[first + s * stride + 1u];
    }
    for (uint d = gl_LocalInvocationID.x; d < HEAD_DIM; d += gl_WorkGroupSize.x) {
        float sum = 0.0;
        for (uint s = 0; s < args.splits; ++s) {
            const float top = partials[first + s * stride];
            if (top != kNone) sum += exp(top - most) * partials[first + s * stride + 2u + d];
        }
        y[(row * args.heads + head) * HEAD_DIM + d] = sum / total;
    }
}
