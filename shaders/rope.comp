// Rotates each head in place. Cosines and sines come from the host, which has the doubles that far positions
// need: per row `pairs` cosines, then `pairs` sines.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { RopeArgs args; };
layout(set = 0, binding = 0, std430) buffer X { float x[]; };
layout(set = 0, binding = 1, std430) readonly buffer Table { float table[]; };
#define STEP_BINDING 2
#include "step.glsl"

void main() {
    const uint count = step_rows * args.heads * args.pairs;
    for (uint i = gl_GlobalInvocationID.x; i < count; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
        const uint pair = i % args.pairs, head = i / args.pairs, row = head / args.heads;
        const uint a = head * args.head_dim + args.first + (args.half_split != 0u ? pair : 2u * pair);
        const uint b = args.half_split != 0u ? a + args.pairs : a + 1u;
        const uint at = args.table + row * 2u * args.pairs + pair;
        const float c = table[at], s = table[at + args.pairs], xa = x[a], xb = x[b];
        x[a] = xa * c - xb * s;
        x[b] = xa * s + xb * c;
    }
}
