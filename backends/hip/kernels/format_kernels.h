// The kernels of one format: a generated source names the format.
#pragma once

#include "kernels/embed.h"
#include "kernels/experts.h"
#include "kernels/linear.h"

#define RL_FORMAT_KERNELS(format)                             \
    namespace redline::hip {                                  \
    RL_KERNEL(128, embed_##format, args::EmbedArgs) {         \
        embed<format>(args);                                  \
    }                                                         \
    RL_KERNEL(128, linear_1_##format, args::LinearArgs) {     \
        linear_vec<format, 2, 1>(args);                       \
    }                                                         \
    RL_KERNEL(128, linear_2_##format, args::LinearArgs) {     \
        linear_vec<format, 2, 2>(args);                       \
    }                                                         \
    RL_KERNEL(128, linear_4_##format, args::LinearArgs) {     \
        linear_vec<format, 2, 4>(args);                       \
    }                                                         \
    RL_KERNEL(128, linear_8_##format, args::LinearArgs) {     \
        linear_vec<format, 2, 8>(args);                       \
    }                                                         \
    RL_KERNEL(256, linear_tile_##format, args::LinearArgs) {  \
        linear_tile<format>(args);                            \
    }                                                         \
    RL_KERNEL(128, gated_1_##format, args::LinearArgs) {      \
        gated_vec<format, 1>(args);                           \
    }                                                         \
    RL_KERNEL(128, gated_2_##format, args::LinearArgs) {      \
        gated_vec<format, 2>(args);                           \
    }                                                         \
    RL_KERNEL(128, gated_4_##format, args::LinearArgs) {      \
        gated_vec<format, 4>(args);                           \
    }                                                         \
    RL_KERNEL(128, gated_8_##format, args::LinearArgs) {      \
        gated_vec<format, 8>(args);                           \
    }                                                         \
    RL_KERNEL(128, expert_##format, args::ExpertArgs) {       \
        expert_vec<format>(args);                             \
    }                                                         \
    RL_KERNEL(128, expert_gated_##format, args::ExpertArgs) { \
        expert_gated_vec<format>(args);                       \
    }                                                         \
    }
