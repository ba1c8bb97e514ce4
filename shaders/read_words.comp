// Reads a buffer through, to measure how fast that goes; writes only what no buffer of zeros gives.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { ElementArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer X { uvec4 x[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { uint y[]; };

void main() {
    uvec4 sum = uvec4(0u);
    const uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint i = gl_GlobalInvocationID.x; i < args.width; i += step * 4u)
        [[unroll]] for (uint k = 0; k < 4; ++k) sum |= x[min(i + k * step, args.width - 1u)];
    if ((sum.x | sum.y | sum.z | sum.w) == 0x5EEDu) y[0] = 1u;
}
