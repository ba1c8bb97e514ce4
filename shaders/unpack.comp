// for each quantized format
// A weight as halfs, for products of so many rows that each of its elements would be decoded several times.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 256;
layout(push_constant) uniform Push { UnpackArgs args; };
#include "weights.glsl"
#include "half_units.glsl"
layout(set = 0, binding = 1, std430) writeonly buffer Halves { uvec4 halves[]; };
const uint PLANE = THREADS + 2;  // padded against bank conflicts
shared uvec4 decoded_units[4 * PLANE];

// A unit each, written side by side.
void main() {
    weight_units = args.units;
    for (uint base = gl_WorkGroupID.x * THREADS; base < args.count; base += gl_NumWorkGroups.x * THREADS) {
        const uint unit = args.first + min(base + gl_LocalInvocationID.x, args.count - 1u);
        uint raw[RAW];
        uvec4 decoded[4];
        fetch_piece(0u, unit, raw);
        piece_halves(unit, raw, decoded);
        barrier();  // those before have been written
        [[unroll]] for (uint k = 0; k < 4; ++k) decoded_units[k * PLANE + gl_LocalInvocationID.x] = swapped(decoded[k]);
        barrier();
        [[unroll]] for (uint k = 0; k < 4; ++k) {
            const uint i = k * THREADS + gl_LocalInvocationID.x;
            if (base + i / 4u < args.count) halves[base * 4u + i] = decoded_units[i % 4u * PLANE + i / 4u];
        }
    }
}
