// for each format
// y[t] = scale * table[token[t]], bit for bit as the host decodes it. A work-group per token; a token whose row
// is in another part of the table is skipped.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { EmbedArgs args; };
#include "weights.glsl"
layout(set = 0, binding = 1, std430) writeonly buffer Y4 { vec4 y4[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y1 { float y1[]; };
#define STEP_BINDING 2
#include "step.glsl"

void decode_row(uint token, uint row) {
#ifdef FORMAT_FLOAT
    for (uint i = gl_LocalInvocationID.x; i < args.cols; i += gl_WorkGroupSize.x)
        y1[token * args.cols + i] = weight_element(0u, row * args.cols + i) * args.scale;
#else
    const uint units = args.cols / 32u;
    for (uint i = gl_LocalInvocationID.x; i < units * 4u; i += gl_WorkGroupSize.x) {
        const uint u = i / 4u, k = i % 4u;
        const uvec2 words = unit_words(0u, row * units + u, k);
        const vec4 s = unit_scales(0u, row * units + u);
        y4[(token * units + u) * 8u + k] = decode_exactly(words.x, s.x, s.y) * args.scale;
        y4[(token * units + u) * 8u + k + 4u] = decode_exactly(words.y, s.z, s.w) * args.scale;
    }
#endif
}

void main() {
    weight_units = args.units;
    for (uint token = gl_WorkGroupID.x; token < step_rows; token += gl_NumWorkGroups.x) {
        const uint row = uint(step_tokens[token]) - args.first_row;
        if (row < args.part_rows) decode_row(token, row);
    }
}
