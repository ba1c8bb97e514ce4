// for each element-wise op: a row of src/plan/ops/each.def
#include "types.glsl"
// Of the row: EACH_ROW, the function that the table makes of it here, and READS_X, READS_Z, READS_COLUMN, 1 or 0.
#include "row.glsl"
layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { EachArgs args; };
#if READS_X
layout(set = 0, binding = 0, std430) readonly buffer X { float xs[]; };
#define EACH_X xs[i]
#else
#define EACH_X 0.0
#endif
#if READS_Z
layout(set = 0, binding = 1, std430) readonly buffer Z { float zs[]; };
#define EACH_Z zs[i]
#else
#define EACH_Z 0.0
#endif
#if READS_COLUMN
layout(set = 0, binding = 0, std430) readonly buffer Column { float columns[]; };
#define EACH_COLUMN columns[i % args.width]
#else
#define EACH_COLUMN 0.0
#endif
#define Y_BINDING (READS_X + READS_Z + READS_COLUMN)
layout(set = 0, binding = Y_BINDING, std430) buffer Y { float ys[]; };
#define EACH_Y ys[i]
#define STEP_BINDING (Y_BINDING + 1)
#include "step.glsl"
#include "act.glsl"

float fused(float a, float b, float c) { return a * b + c; }
float exp_of(float a) { return exp(a); }
float root_of(float a) { return sqrt(a); }
float size_of(float a) { return abs(a); }
float where_less(float a, float b, float yes, float no) { return a < b ? yes : no; }
// tanh by exp: some drivers' own overflows for large arguments.
float capped(float a, float cap) {
    const float e = exp(-2.0 * abs(a) / cap), t = (1.0 - e) / (1.0 + e);
    return cap * (a < 0.0 ? -t : t);
}

#define V float
#define EACH_VALUE(i) args.values[i]
#define EACH(name, operands, values, holds, statements) float each_##name(uint i) { values READ_##operands statements }
#include "../src/plan/ops/each.def"

void main() {
    const uint count = rows_in_step(args.rows_of) * args.width;
    for (uint i = gl_GlobalInvocationID.x; i < count; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) ys[i] = EACH_ROW(i);
}
