// y[t] = the sum of x over the tokens of t's block up to t, times 1 / ratio. An invocation per element of a sequence, which
// goes over its rows; it alone reads and writes its part of the state.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint STEP_KIND = RL_STEP_ALONE;
layout(push_constant) uniform Push { BlockMeanArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { float y[]; };
layout(set = 0, binding = 2, std430) buffer State { float state[]; };
#define STEP_BINDING 3
#include "step.glsl"

void sum_up(uint segment, uint column) {
    const uint first = step_word(step_states + 4u * segment), rows = step_word(step_states + 4u * segment + 1u);
    const uint from = step_word(step_states + 4u * segment + 2u), to = step_word(step_states + 4u * segment + 3u);
    float sum = from == RL_NO_STATE ? 0.0 : state[from * args.width + column];
    for (uint row = first; row < first + rows; ++row) {
        const uint token = STEP_KIND == RL_STEP_ALONE ? step_position + row : step_word(step_places + 2u * row);
        const float own = x[row * args.width + column];
        sum = token % args.ratio == 0u ? own : sum + own;
        y[row * args.width + column] = sum * (1.0 / float(args.ratio));
        const uint kept = state_behind(row);
        if (kept != RL_NO_STATE) state[kept * args.width + column] = sum;
    }
    state[to * args.width + column] = sum;
}

void main() {
    const uint count = step_segments * args.width;
    for (uint i = gl_GlobalInvocationID.x; i < count; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x)
        sum_up(i / args.width, i % args.width);
}
