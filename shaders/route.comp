// The `used` best experts of each row by its logits, best first, ties to the lower id, and their weights. A
// work-group per row; one subgroup chooses.
#include "types.glsl"
#extension GL_KHR_shader_subgroup_arithmetic : require
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint EXPERTS = 8;
layout(constant_id = 2) const uint USED = 2;
layout(push_constant) uniform Push { RouteArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer Logits { float logits[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Ids { int ids[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Scales { float scales[]; };
#define STEP_BINDING 3
#include "step.glsl"
layout(set = 0, binding = 4, std430) readonly buffer Bias { float bias[]; };
shared float chances[EXPERTS];
shared uint taken[EXPERTS];
shared float chosen[USED];

const uint kSoftmax = 0, kSigmoid = 1, kSoftmaxOfSelected = 2;

void main() {
    const uint row = gl_WorkGroupID.x;
    if (row >= step_rows || gl_SubgroupID > 0) return;
    const uint lane = gl_SubgroupInvocationID, lanes = gl_SubgroupSize;
    float top = -1.0 / 0.0;
    for (uint e = lane; e < EXPERTS; e += lanes) top = max(top, logits[row * EXPERTS + e]);
    top = subgroupMax(top);
    float sum = 0.0;
    for (uint e = lane; e < EXPERTS; e += lanes) {
        const float z = logits[row * EXPERTS + e];
        float p = z;
        if (args.gating == kSoftmax) p = exp(z - top);
        if (args.gating == kSigmoid) p = 1.0 / (1.0 + exp(-z));
        sum += p;
        chances[e] = p;
        taken[e] = 0u;
    }
    sum = subgroupAdd(sum);
    if (args.gating == kSoftmax)
        for (uint e = lane; e < EXPERTS; e += lanes) chances[e] /= sum;
    subgroupMemoryBarrierShared();
    subgroupBarrier();
    for (uint place = 0; place < USED; ++place) {
        float best = -1.0 / 0.0;
        uint id = EXPERTS;
        for (uint e = lane; e < EXPERTS; e += lanes) {
            const float score = chances[e] + (args.has_bias != 0u ? bias[e] : 0.0);
            if (taken[e] == 0u && (id == EXPERTS || score > best)) {
                best = score;
                id = e;
            }
        }
        const float most = subgroupMax(id < EXPERTS ? best : -1.0 / 0.0);
        uint winner = subgroupMin(id < EXPERTS && best == most ? id : EXPERTS);
        if (winner == EXPERTS) winner = subgroupMin(id);  // NaN everywhere: any that is left
        if (subgroupElect()) {
            taken[winner] = 1u;
            chosen[place] = chances[winner];
            ids[row * USED + place] = int(winner);
        }
        subgroupMemoryBarrierShared();
        subgroupBarrier();
    }
    if (!subgroupElect()) return;
    float total = 0.0;
    const float first = chosen[0];
    if (args.gating == kSoftmaxOfSelected) {
        for (uint i = 0; i < USED; ++i) total += exp(chosen[i] - first);
        for (uint i = 0; i < USED; ++i) chosen[i] = exp(chosen[i] - first) / total;
    }
    total = 0.0;
    for (uint i = 0; i < USED; ++i) total += chosen[i];
    const float divisor = args.normalise != 0u ? max(total, 6.103515625e-5) : 1.0;
    for (uint i = 0; i < USED; ++i) scales[row * USED + i] = chosen[i] / divisor * args.scale;
}
