// with cooperative matrices: which of their elements each invocation of a subgroup holds. One subgroup; found[] gets 64
// numbers of each invocation: of its elements of a factor of TM x TK the row and column as row * TK + column, in the second
// half of a factor of TK x TN the column and row as column * TK + row, and behind the last element NONE.
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint TM = 8;
layout(constant_id = 2) const uint TN = 8;
layout(constant_id = 3) const uint TK = 8;
const uint NONE = 0xFFFFu, HALF = 32;
layout(set = 0, binding = 0, std430) writeonly buffer Found { uint found[]; };
layout(push_constant) uniform Push { ElementArgs args; };
shared uvec4 numbers[32];  // halfs from 0 on

void main() {
    for (uint i = gl_LocalInvocationID.x; i < 32u; i += gl_WorkGroupSize.x)
        [[unroll]] for (uint k = 0; k < 4; ++k) numbers[i][k] = packHalf2x16(vec2(i * 8u + k * 2u, i * 8u + k * 2u + 1u));
    barrier();
    coopmat<float16_t, gl_ScopeSubgroup, TM, TK, gl_MatrixUseA> w;
    coopmat<float16_t, gl_ScopeSubgroup, TK, TN, gl_MatrixUseB> x;
    coopMatLoad(w, numbers, 0, TK / 8u, gl_CooperativeMatrixLayoutRowMajor);
    coopMatLoad(x, numbers, 0, TK / 8u, gl_CooperativeMatrixLayoutColumnMajor);
    const uint at = gl_SubgroupInvocationID * HALF * 2u;
    for (uint i = 0; i < HALF; ++i) found[at + i] = found[at + HALF + i] = NONE;
    for (uint i = 0; i < min(HALF, w.length()); ++i) found[at + i] = uint(w[i]);
    for (uint i = 0; i < min(HALF, x.length()); ++i) found[at + HALF + i] = uint(x[i]);
}
