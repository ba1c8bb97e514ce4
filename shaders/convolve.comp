// A causal convolution of each channel: u = before * x, y[t] = act(sum over j of w[j] * u[t - TAPS + 1 + j] + bias) * behind. An
// invocation per channel and RL_CONVOLVED_ROWS rows of a sequence; that of the first rows writes the state, which it alone
// reads, so that it may lie where it lay.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint TAPS = 4;
const uint KEPT = TAPS - 1;  // rows of u in a state, oldest first
layout(push_constant) uniform Push { ConvolveArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { float y[]; };
layout(set = 0, binding = 2, std430) readonly buffer W { float w[]; };
layout(set = 0, binding = 3, std430) buffer State { float state[]; };
layout(set = 0, binding = 4, std430) readonly buffer Before { float before[]; };
layout(set = 0, binding = 5, std430) readonly buffer Behind { float behind[]; };
layout(set = 0, binding = 6, std430) readonly buffer Bias { float bias[]; };
#define STEP_BINDING 7
#include "step.glsl"

float input_at(uint at) {
    return args.has_before != 0u ? before[at] * x[at] : x[at];
}

void convolve(uint segment, uint begin, uint channel) {
    const uint first_row = step_word(step_states + 4u * segment), rows = step_word(step_states + 4u * segment + 1u);
    if (begin >= rows) return;
    const uint from = step_word(step_states + 4u * segment + 2u), to = step_word(step_states + 4u * segment + 3u);
    const uint end = min(begin + RL_CONVOLVED_ROWS, rows), first = first_row * args.width + channel;
    const uint old = from * KEPT * args.width + channel, next = to * KEPT * args.width + channel;
    const bool zero = from == RL_NO_STATE;
    const float added = args.has_bias != 0u ? bias[channel] : 0.0;
    float past[KEPT], taps[TAPS];
    [[unroll]] for (uint j = 0; j < TAPS; ++j) taps[j] = w[channel * TAPS + j];
    [[unroll]] for (uint j = 0; j < KEPT; ++j) {
        if (begin > 0u)
            past[j] = input_at(first + (begin - KEPT + j) * args.width);
        else
            past[j] = zero ? 0.0 : state[old + j * args.width];
    }
    for (uint row = begin; row < end; ++row) {
        const uint at = first + row * args.width;
        const float u = input_at(at);
        float sum = taps[KEPT] * u;
        [[unroll]] for (uint j = 0; j < KEPT; ++j) sum += taps[j] * past[j];
        [[unroll]] for (uint j = 0; j + 1 < KEPT; ++j) past[j] = past[j + 1];
        past[KEPT - 1] = u;
        sum += added;
        if (args.silu != 0u) sum /= 1.0 + exp(-sum);
        y[at] = args.has_behind != 0u ? sum * behind[at] : sum;
        const uint kept = state_behind(first_row + row);
        if (kept == RL_NO_STATE) continue;
        [[unroll]] for (uint j = 0; j < KEPT; ++j) state[(kept * KEPT + j) * args.width + channel] = past[j];
    }
    if (begin > 0u) return;
    [[unroll]] for (uint j = 0; j < KEPT; ++j)
        state[next + j * args.width] = end < rows ? input_at(first + (rows - KEPT + j) * args.width) : past[j];
}

void main() {
    const uint stretches = (args.width + gl_WorkGroupSize.x - 1u) / gl_WorkGroupSize.x;
    const uint pieces = (step_rows + RL_CONVOLVED_ROWS - 1u) / RL_CONVOLVED_ROWS;
    for (uint n = gl_WorkGroupID.x; n < stretches * pieces * step_segments; n += gl_NumWorkGroups.x) {
        const uint channel = n % stretches * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
        if (channel < args.width)
            convolve(n / (stretches * pieces), n / stretches % pieces * RL_CONVOLVED_ROWS, channel);
    }
}
