// How a work-group's tile of a product of few tokens on matrix units is cut: see few_coop.glsl.
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint BM = 64;
layout(constant_id = 2) const uint BN = 16;
layout(constant_id = 3) const uint BK = 32;
layout(constant_id = 4) const uint TM = 8;
layout(constant_id = 5) const uint TN = 8;
layout(constant_id = 6) const uint TK = 8;
layout(constant_id = 7) const uint ACROSS = 4;
layout(constant_id = 8) const uint DEEP = 2;
layout(constant_id = 9) const uint SUBGROUP = 8;
const bool IN_ORDER = false;  // see half_units.glsl
