// The kernels of one format: a generated source names the format.
#pragma once

#include "kernels/byte_tile.h"
#include "kernels/dot.h"
#include "kernels/embed.h"
#include "kernels/experts.h"
#include "kernels/few.h"
#include "kernels/heads.h"
#include "kernels/linear.h"
#include "kernels/route.h"
#include "kernels/shared_expert.h"
#include "kernels/stream.h"
#include "kernels/tile.h"

#define RL_VECTOR_KERNEL(format, tokens)                           \
    RL_KERNEL(128, linear_##tokens##_##format, args::LinearArgs) { \
        linear_vec<format, tokens>(args);                          \
    }
#define RL_DOT_KERNELS(format, tokens)                                      \
    RL_KERNEL(kDotThreads, linear_dot_##tokens##_##format, args::DotArgs) { \
        linear_dot<format, tokens>(args);                                   \
    }                                                                       \
    RL_KERNEL(kDotThreads, gated_dot_##tokens##_##format, args::DotArgs) {  \
        gated_dot<format, tokens>(args);                                    \
    }

// What all formats have; sums in f32 of activations in f32.
#define RL_COMMON_KERNELS(format)                             \
    RL_KERNEL(128, embed_##format, args::EmbedArgs) {         \
        embed<format>(args);                                  \
    }                                                         \
    RL_VECTOR_KERNEL(format, 1)                               \
    RL_VECTOR_KERNEL(format, 8)                               \
    RL_KERNEL(128, head_1_##format, args::HeadArgs) {         \
        head_vec<format, 1>(args);                            \
    }                                                         \
    RL_KERNEL(128, head_4_##format, args::HeadArgs) {         \
        head_vec<format, 4>(args);                            \
    }                                                         \
    RL_KERNEL(256, head_tile_##format, args::HeadArgs) {      \
        head_tile<format>(args);                              \
    }                                                         \
    RL_KERNEL(128, expert_##format, args::ExpertArgs) {       \
        expert_vec<format>(args);                             \
    }                                                         \
    RL_KERNEL(128, expert_gated_##format, args::ExpertArgs) { \
        expert_gated_vec<format>(args);                       \
    }

#define RL_MATRIX_KERNELS(format)                                                   \
    RL_DENSE_KERNEL(kTileThreads, 2, linear_matrix_128_##format, args::TileArgs) {  \
        linear_matrix<format, 128, 128, false>(args);                               \
    }                                                                               \
    RL_DENSE_KERNEL(kTileThreads, 2, linear_matrix_wide_##format, args::TileArgs) { \
        linear_matrix<format, 64, 128, false>(args);                                \
    }                                                                               \
    RL_DENSE_KERNEL(kTileThreads, 3, linear_matrix_64_##format, args::TileArgs) {   \
        linear_matrix<format, 64, 64, false>(args);                                 \
    }                                                                               \
    RL_DENSE_KERNEL(kTileThreads, 2, gated_matrix_##format, args::TileArgs) {       \
        linear_matrix<format, 128, 128, true>(args);                                \
    }

// Where matrix units multiply few tokens, dot products are for a row too long for kernels of one token.
#ifdef RL_FACTORS
#define RL_FEW_DOT_KERNELS(format) RL_DOT_KERNELS(format, 2)
#define RL_FEW_KERNEL(name, by, format, tokens)                                                  \
    RL_EARLY_KERNEL(kFewThreads<tokens>, kFewDense<tokens>, linear_##name##_##tokens##_##format, \
                    args::FewArgs) {                                                             \
        by<format, tokens, false>(args);                                                         \
    }                                                                                            \
    RL_EARLY_KERNEL(kFewThreads<tokens>, kFewDense<tokens>, gated_##name##_##tokens##_##format,  \
                    args::FewArgs) {                                                             \
        by<format, tokens, true>(args);                                                          \
    }
#define RL_FEW_KERNELS_BY(name, by, format) \
    RL_FEW_KERNEL(name, by, format, 16)     \
    RL_FEW_KERNEL(name, by, format, 32)     \
    RL_FEW_KERNEL(name, by, format, 64)
#ifdef RL_EIGHT_TOKENS
#define RL_ALL_FEW_KERNELS(name, by, format) \
    RL_FEW_KERNELS_BY(name, by, format) RL_FEW_KERNEL(name, by, format, 8)
#else
#define RL_ALL_FEW_KERNELS(name, by, format) RL_FEW_KERNELS_BY(name, by, format)
#endif
#define RL_FEW_KERNELS(format) RL_ALL_FEW_KERNELS(few, linear_few, format)
#else
#define RL_FEW_DOT_KERNELS(format) \
    RL_DOT_KERNELS(format, 2)      \
    RL_DOT_KERNELS(format, 4)      \
    RL_DOT_KERNELS(format, 8)
#define RL_FEW_KERNELS(format)
#endif
#ifdef RL_COPIES_AHEAD
#define RL_COPIED_FEW_KERNELS(format) RL_ALL_FEW_KERNELS(copied, linear_few_copied, format)
#else
#define RL_COPIED_FEW_KERNELS(format)
#endif

#define RL_EXPERT_MATRIX_KERNELS(format)                                                         \
    RL_DENSE_KERNEL(kTileThreads, kExpertBlocks, expert_matrix_##format, args::ExpertTileArgs) { \
        expert_matrix<format, kExpertRows, 64, false>(args);                                     \
    }                                                                                            \
    RL_DENSE_KERNEL(kTileThreads, 2, expert_gated_matrix_##format, args::ExpertTileArgs) {       \
        expert_matrix<format, 128, 64, true>(args);                                              \
    }                                                                                            \
    RL_DENSE_KERNEL(kTileThreads, 2, expert_matrix_32_##format, args::ExpertTileArgs) {          \
        expert_matrix<format, kNarrowRows, kNarrowPlaces, false>(args);                          \
    }                                                                                            \
    RL_DENSE_KERNEL(kTileThreads, 2, expert_gated_matrix_32_##format, args::ExpertTileArgs) {    \
        expert_matrix<format, kNarrowRows, kNarrowPlaces, true>(args);                           \
    }

#ifdef RL_COPIES_AHEAD
#define RL_STREAM_KERNEL(name, rows, format, other)               \
    RL_EARLY_KERNEL(kDotThreads, 2, name, args::DotArgs) {        \
        each_streamed_row<format, rows, other>(args, rows{args}); \
    }
#define RL_FLOAT_STREAM_KERNEL(name, rows, format)               \
    RL_EARLY_KERNEL(kDotThreads, 2, name, args::DotArgs) {       \
        each_streamed_float_row<format, rows>(args, rows{args}); \
    }
#else
#define RL_STREAM_KERNEL(name, rows, format, other)
#define RL_FLOAT_STREAM_KERNEL(name, rows, format)
#endif

#define RL_QUANTIZED_KERNELS(format)                                                \
    namespace redline::hip {                                                        \
    RL_COMMON_KERNELS(format)                                                       \
    RL_OWN_KERNEL(kDotThreads, 2, linear_dot_own_##format, args::DotArgs) {         \
        each_own_row<format>(args, LinearRows{args});                               \
    }                                                                               \
    RL_DENSE_KERNEL(kDotThreads, 2, gated_dot_own_##format, args::DotArgs) {        \
        each_own_row<format>(args, GatedRows{args});                                \
    }                                                                               \
    RL_DENSE_KERNEL(kDotThreads, 1, expert_own_##format, args::DotArgs) {           \
        each_own_row<format>(args, ExpertSumRows{args});                            \
    }                                                                               \
    RL_EARLY_KERNEL(kDotThreads, 2, expert_gated_own_##format, args::DotArgs) {     \
        each_own_row<format>(args, ExpertGatedRows{{args}});                        \
    }                                                                               \
    RL_STREAM_KERNEL(linear_stream_##format, LinearRows, format, format)            \
    RL_STREAM_KERNEL(gated_stream_##format, GatedRows, format, format)              \
    RL_STREAM_KERNEL(expert_gated_stream_##format, ExpertGatedRows, format, format) \
    RL_FEW_DOT_KERNELS(format)                                                      \
    RL_MATRIX_KERNELS(format)                                                       \
    RL_FEW_KERNELS(format)                                                          \
    RL_COPIED_FEW_KERNELS(format)                                                   \
    RL_EXPERT_MATRIX_KERNELS(format)                                                \
    RL_KERNEL(kDotThreads, expert_dot_##format, args::ExpertArgs) {                 \
        expert_dot<format>(args);                                                   \
    }                                                                               \
    RL_KERNEL(kDotThreads, expert_gated_dot_##format, args::ExpertArgs) {           \
        expert_gated_dot<format>(args);                                             \
    }                                                                               \
    }

// Products of many tokens in int8, of a format whose scales are of whole units.
#define RL_BYTE_KERNELS(format)                                                              \
    namespace redline::hip {                                                                 \
    RL_DENSE_KERNEL(kTileThreads, 2, linear_bytes_128_##format, args::TileArgs) {            \
        linear_matrix<format, 128, 128, false, InBytes>(args);                               \
    }                                                                                        \
    RL_DENSE_KERNEL(kTileThreads, 2, linear_bytes_wide_##format, args::TileArgs) {           \
        linear_matrix<format, 64, 128, false, InBytes>(args);                                \
    }                                                                                        \
    RL_DENSE_KERNEL(kTileThreads, 3, linear_bytes_64_##format, args::TileArgs) {             \
        linear_matrix<format, 64, 64, false, InBytes>(args);                                 \
    }                                                                                        \
    RL_DENSE_KERNEL(kTileThreads, 2, gated_bytes_##format, args::TileArgs) {                 \
        linear_matrix<format, 128, 128, true, InBytes>(args);                                \
    }                                                                                        \
    RL_DENSE_KERNEL(kTileThreads, 2, expert_bytes_##format, args::ExpertTileArgs) {          \
        expert_matrix<format, kExpertRows, 64, false, InBytes>(args);                        \
    }                                                                                        \
    RL_DENSE_KERNEL(kTileThreads, 2, expert_gated_bytes_##format, args::ExpertTileArgs) {    \
        expert_matrix<format, 128, 64, true, InBytes>(args);                                 \
    }                                                                                        \
    RL_DENSE_KERNEL(kTileThreads, 2, expert_bytes_32_##format, args::ExpertTileArgs) {       \
        expert_matrix<format, kNarrowRows, kNarrowPlaces, false, InBytes>(args);             \
    }                                                                                        \
    RL_DENSE_KERNEL(kTileThreads, 2, expert_gated_bytes_32_##format, args::ExpertTileArgs) { \
        expert_matrix<format, kNarrowRows, kNarrowPlaces, true, InBytes>(args);              \
    }                                                                                        \
    }

#define RL_FLOAT_KERNELS(format)                                          \
    namespace redline::hip {                                              \
    RL_COMMON_KERNELS(format)                                             \
    RL_VECTOR_KERNEL(format, 2)                                           \
    RL_VECTOR_KERNEL(format, 4)                                           \
    RL_EARLY_KERNEL(128, 4, route_row_##format, args::RouteRowArgs) {     \
        route_row<format>(args);                                          \
    }                                                                     \
    RL_KERNEL(256, linear_tile_##format, args::LinearArgs) {              \
        linear_tile<format>(args);                                        \
    }                                                                     \
    RL_DENSE_KERNEL(kDotThreads, 2, linear_own_##format, args::DotArgs) { \
        each_float_row<format>(args, LinearRows{args});                   \
    }                                                                     \
    RL_DENSE_KERNEL(kDotThreads, 2, gated_own_##format, args::DotArgs) {  \
        each_float_row<format>(args, GatedRows{args});                    \
    }                                                                     \
    RL_FLOAT_STREAM_KERNEL(linear_stream_##format, LinearRows, format)    \
    RL_FLOAT_STREAM_KERNEL(gated_stream_##format, GatedRows, format)      \
    }

// Of floats that halfs can stand for.
#define RL_FLOAT_MATRIX_KERNELS(format) \
    namespace redline::hip {            \
    RL_MATRIX_KERNELS(format)           \
    RL_FEW_KERNELS(format)              \
    RL_EXPERT_MATRIX_KERNELS(format)    \
    }

// A second format beside the first, as mixes of K formats have it in an attention's products.
#define RL_PAIR_KERNEL(format, other)                                                 \
    namespace redline::hip {                                                          \
    RL_OWN_KERNEL(kDotThreads, 2, linear_dot_own_##format##_##other, args::DotArgs) { \
        each_own_row<format, LinearRows, other>(args, LinearRows{args});              \
    }                                                                                 \
    RL_STREAM_KERNEL(linear_stream_##format##_##other, LinearRows, format, other)     \
    }
