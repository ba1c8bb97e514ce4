// How a product of few tokens is cut whose invocations fill matrices by themselves, and which elements of them an
// invocation holds: see few_fragments.glsl and backends/vulkan/runtime/fragments.h.
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint BN = 8;
layout(constant_id = 2) const uint TM = 8;
layout(constant_id = 3) const uint TN = 8;
layout(constant_id = 4) const uint TK = 8;
layout(constant_id = 5) const uint FM = 2;
layout(constant_id = 6) const uint DEEP = 4;
layout(constant_id = 7) const uint SUBGROUP = 8;
layout(constant_id = 8) const uint HELD = 1;  // matrices of sums, or pairs, that are added up at a time
layout(constant_id = 9) const uint OWNERS = 8;
layout(constant_id = 10) const uint OWNER_SHIFT = 0;
layout(constant_id = 11) const uint PLACE_SHIFT = 0;
layout(constant_id = 12) const uint PLACE_MASK = 0;
layout(constant_id = 13) const uint ROWS_EACH = 8;
layout(constant_id = 14) const uint ROW_STEP = 1;
layout(constant_id = 15) const uint ROW_BITS = 7;
layout(constant_id = 16) const uint TOKENS_EACH = 8;
layout(constant_id = 17) const uint TOKEN_STEP = 1;
layout(constant_id = 18) const uint TOKEN_BITS = 7;
layout(constant_id = 19) const uint TAKES = 0;       // 1: rows that the dispatch before left, 2: without their scales
layout(constant_id = 20) const bool LEAVES = false;  // its rows
const bool IN_ORDER = false;  // see half_units.glsl
