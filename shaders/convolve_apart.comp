// As convolve.comp, with taps that lie args.apart rows from each other. An invocation per channel of a sequence, which
// reads what is further back from the step's rows, and before them from the state.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint TAPS = 4;
layout(push_constant) uniform Push { ConvolveApartArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { float y[]; };
layout(set = 0, binding = 2, std430) readonly buffer W { float w[]; };
layout(set = 0, binding = 3, std430) buffer State { float state[]; };
layout(set = 0, binding = 4, std430) readonly buffer Before { float before[]; };
layout(set = 0, binding = 5, std430) readonly buffer Behind { float behind[]; };
#define STEP_BINDING 6
#include "step.glsl"

uint first, old;
bool zero;

// Of a row counted from the first that the state has.
float input_at(uint row, uint kept) {
    if (row < kept) return zero ? 0.0 : state[old + row * args.width];
    const uint at = first + (row - kept) * args.width;
    return args.has_before != 0u ? before[at] * x[at] : x[at];
}

void convolve(uint segment, uint channel) {
    const uint first_row = step_word(step_states + 4u * segment), rows = step_word(step_states + 4u * segment + 1u);
    const uint from = step_word(step_states + 4u * segment + 2u), to = step_word(step_states + 4u * segment + 3u);
    const uint kept = (TAPS - 1u) * args.apart, next = to * kept * args.width + channel;
    first = first_row * args.width + channel;
    old = from * kept * args.width + channel;
    zero = from == RL_NO_STATE;
    float taps[TAPS];
    [[unroll]] for (uint j = 0; j < TAPS; ++j) taps[j] = w[channel * TAPS + j];
    for (uint row = 0; row < rows; ++row) {
        float sum = 0.0;
        [[unroll]] for (uint j = 0; j < TAPS; ++j) sum += taps[j] * input_at(row + j * args.apart, kept);
        if (args.silu != 0u) sum /= 1.0 + exp(-sum);
        const uint at = first + row * args.width;
        y[at] = args.has_behind != 0u ? sum * behind[at] : sum;
        const uint behind_row = state_behind(first_row + row);
        for (uint j = 0; behind_row != RL_NO_STATE && j < kept; ++j)
            state[(behind_row * kept + j) * args.width + channel] = input_at(row + 1u + j, kept);
    }
    // In order: where both states are one, a row is read before it is written.
    for (uint j = 0; j < kept; ++j) state[next + j * args.width] = input_at(rows + j, kept);
}

void main() {
    const uint stretches = (args.width + gl_WorkGroupSize.x - 1u) / gl_WorkGroupSize.x;
    for (uint n = gl_WorkGroupID.x; n < stretches * step_segments; n += gl_NumWorkGroups.x) {
        const uint channel = n % stretches * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
        if (channel < args.width) convolve(n / stretches, channel);
    }
}
