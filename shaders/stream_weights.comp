// The weights of a row's streams: see StreamWeights in plan/ops/streams.h. A work-group per row, whose first invocations
// have an element of the mixing each.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { StreamWeightsArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 1, std430) readonly buffer Scale { float scale[]; };
layout(set = 0, binding = 2, std430) readonly buffer Base { float base[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Read { float read[]; };
layout(set = 0, binding = 4, std430) writeonly buffer Added { float added[]; };
layout(set = 0, binding = 5, std430) writeonly buffer Mix { float mixed[]; };
#define STEP_BINDING 6
#include "step.glsl"
const uint MOST_STREAMS = 8;  // as in src/plan/ops/streams.h
shared float weights[MOST_STREAMS * MOST_STREAMS];

float logit(uint row, uint part, uint i) {
    const uint at = part * args.streams + i;
    return x[row * args.width + at] * scale[part] + base[at];
}
float sigmoid(float value) { return 1.0 / (1.0 + exp(-value)); }

// The sum of the line that begins at `first`, whose elements lie `apart`; all invocations see what all did.
float line_sum(float own, bool mixes, uint first, uint apart) {
    barrier();
    if (mixes) weights[gl_LocalInvocationID.x] = own;
    barrier();
    float sum = 0.0;
    for (uint i = 0; i < args.streams && mixes; ++i) sum += weights[first + i * apart];
    return sum;
}

void mix_streams(uint row) {
    const uint n = args.streams, tid = gl_LocalInvocationID.x, line = tid / n * n, column = tid % n;
    const bool mixes = tid < n * n;
    float top = -1.0 / 0.0, own = 0.0;
    for (uint j = 0; j < n && mixes; ++j) top = max(top, logit(row, 2u, line + j));
    if (mixes) own = exp(logit(row, 2u, tid) - top);
    own = own / line_sum(own, mixes, line, 1u) + args.eps;
    own /= line_sum(own, mixes, column, n) + args.eps;
    for (uint round = 1; round < args.rounds; ++round) {
        own /= line_sum(own, mixes, line, 1u) + args.eps;
        own /= line_sum(own, mixes, column, n) + args.eps;
    }
    if (mixes) mixed[row * n * n + tid] = own;
}

void main() {
    const uint rows = rows_in_step(args.of_outputs), tid = gl_LocalInvocationID.x;
    for (uint row = gl_WorkGroupID.x; row < rows; row += gl_NumWorkGroups.x) {
        if (tid < args.streams) read[row * args.streams + tid] = sigmoid(logit(row, 0u, tid)) + args.eps;
        if (args.rounds == 0u) continue;
        if (tid < args.streams) added[row * args.streams + tid] = 2.0 * sigmoid(logit(row, 1u, tid));
        mix_streams(row);
    }
}
