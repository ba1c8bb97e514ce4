// What kernels of blocks, and those of backends/gpu/plain_ops.h, are told.
#pragma once

#include "kernels/latent_args.h"

namespace redline::hip::args {

using uint = uint32_t;
#define RL_STEP const Step* step;
#define RL_BUFFER(type, name) type* name;
#define RL_GIVEN(name)
#include "backends/gpu/plain_args.def"
#undef RL_STEP
#undef RL_BUFFER
#undef RL_GIVEN

// Of block_scores, and of block_attention.
struct BlockArgs {
    const Step* step;
    const float* q;
    const float* chosen;  // (rows, blocks)
    float* y;
    Cache cache;
    uint32_t heads;
    uint32_t ratio;
    uint32_t blocks;     // of a context, or most that are chosen
    uint32_t first_row;  // of the step: rows first_row .. end_row - 1
    uint32_t end_row;
    float scale;
    uint32_t row_tokens;   // of the cache: 1, or ratio
    const float* weights;  // (rows, heads), of scores; null: 1
};

// Of block_few.
struct BlockFewArgs {
    AttentionArgs heads;
    const float* chosen;  // (rows, most)
    uint32_t most;
    uint32_t ratio;
};

// Of entry_attention: the tokens are its latents.
struct EntryArgs {
    LatentArgs latent;
    Cache entries;
    const float* chosen;  // (rows, most); null: all
    uint32_t most;
    uint32_t ratio;  // 0: there are no entries
    uint32_t window;
};

}  // namespace redline::hip::args
