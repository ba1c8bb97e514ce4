// How a work-group's tile of a product on matrix units is cut: BM rows of a weight by BN tokens, over tiles of BK
// columns. Subgroups stand ACROSS x DOWN, each with FM x FN matrices of TM x TN. With GROUP_MATRICES, which the build
// defines, the work-group has one matrix as large as the tile, and of the constants from TM to SUBGROUP only TK counts.
// See coop_product.glsl. With INT8_DOTS, beside INT8_MATRICES, dot products of four codes take the place of matrices:
// ACROSS x DOWN invocations have FM rows by FN tokens each, TM and TN are 1, and TK is that of a uvec4.
#ifndef INT8_DOTS
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#endif
// What is multiplied: halfs, or what the build defines: with BFLOAT_MATRICES bfloat16 numbers, with INT8_MATRICES codes in
// int8, whose sums of a block of columns are scaled (int8_tile.glsl).
#ifdef INT8_MATRICES
#define FACTOR int8_t
#elif defined(BFLOAT_MATRICES)
#extension GL_EXT_bfloat16 : require
#define FACTOR bfloat16_t
#else
#define FACTOR float16_t
#endif
#ifdef GROUP_MATRICES
#extension GL_NV_cooperative_matrix2 : require
#endif
#include "types.glsl"
#ifdef INT8_DOTS
#include "dot.glsl"
#endif
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 256;
layout(constant_id = 1) const uint BM = 64;
layout(constant_id = 2) const uint BN = 64;
layout(constant_id = 3) const uint BK = 32;
layout(constant_id = 4) const uint TM = 8;
layout(constant_id = 5) const uint TN = 8;
layout(constant_id = 6) const uint TK = 8;
layout(constant_id = 7) const uint ACROSS = 8;  // subgroups over rows
layout(constant_id = 8) const uint DOWN = 4;    // ... over tokens
layout(constant_id = 9) const uint SUBGROUP = 8;
layout(constant_id = 10) const bool WHOLE = false;    // buffers go on to the end of every tile, both ways
layout(constant_id = 11) const bool IN_ORDER = false;  // activations are, see half_units.glsl
const uint FM = BM / (ACROSS * TM);
const uint FN = BN / (DOWN * TN);
const uint MATRICES_EACH = FM * FN;
#ifdef INT8_MATRICES
const uint PER_WORD = 16;  // factors in a uvec4
// Matrices begin with a uvec4: where they have 8 columns, those of a uvec4 stand in two.
const uint STEP = TK < PER_WORD ? TK : PER_WORD;
#else
const uint PER_WORD = 8, STEP = 8;
#endif
const uint STRIDE = BK / STEP + 1;  // of a row of a tile, in uvec4, padded against bank conflicts
const uint X_WORDS = BN * (BK / PER_WORD), X_EACH = (X_WORDS + THREADS - 1) / THREADS;  // of a tile
