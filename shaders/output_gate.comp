// y *= act(gate), for each head.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { OutputGateArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 1, std430) buffer Y { float y[]; };
#define STEP_BINDING 2
#include "step.glsl"
#include "softplus.glsl"

void main() {
    const uint count = rows_in_step(args.of_outputs) * args.width;
    for (uint i = gl_GlobalInvocationID.x; i < count; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
        const float gate = x[i / args.head_dim * args.stride + args.first + i % args.head_dim * args.step_of_gates];
        if (args.act == RL_GATE_SIGMOID)
            y[i] /= 1.0 + exp(-gate);
        else
            y[i] *= args.act == RL_GATE_SOFTPLUS ? softplus(gate) : gate;
    }
}
