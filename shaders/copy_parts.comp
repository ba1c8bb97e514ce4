// Parts of rows of x, all of one width, go to y.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { CopyPartsArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { float y[]; };
#define STEP_BINDING 2
#include "step.glsl"

void main() {
    const uint copied = args.parts * args.width, count = rows_in_step(args.of_outputs) * copied;
    for (uint i = gl_GlobalInvocationID.x; i < count; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
        const uint row = i / copied, part = i % copied / args.width, column = i % args.width;
        y[row * args.y_width + args.y_first + part * args.y_stride + column] =
            x[row * args.x_width + args.x_first + part * args.x_stride + column];
    }
}
