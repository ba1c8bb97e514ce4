// What kernels of streams and of blocks are told.
#pragma once

#include "kernels/latent_args.h"

namespace redline::hip::args {

struct StreamArgs {
    const Step* step;
    const float* x;
    const float* w;  // or the other factor
    float* y;
    uint32_t width;  // of a stream
    uint32_t streams;
    uint32_t of_outputs;
    uint32_t flag;  // of stream_mix: weights are of streams; of stream_add: y is not read
    float scale;
    float offset;    // of stream_add, as what follows; without `w` weights are zeros
    uint32_t first;  // the first stream that it changes
};

struct StreamWeightsArgs {
    const Step* step;
    const float* x;      // (rows, width)
    const float* scale;  // three, or one
    const float* base;
    float* read;
    float* add;  // null: streams are only read
    float* mix;
    uint32_t streams;
    uint32_t width;
    uint32_t of_outputs;
    uint32_t rounds;
    float eps;
};

struct StreamBlendArgs {
    const Step* step;
    const float* x;
    const float* w;
    const float* mix;
    const float* from;
    float* y;
    uint32_t width;  // of a stream
    uint32_t streams;
    uint32_t of_outputs;
};

struct BlockMeanArgs {
    const Step* step;
    const SegmentState* states;
    const Place* places;  // null: rows follow the step's first
    const float* x;
    float* y;
    float* state;
    uint32_t width;
    uint32_t ratio;
};

struct BlockPoolArgs {
    const Step* step;
    const SegmentState* states;
    const Place* places;
    const float* x;  // (rows, width), or with overlaps (rows, 2 * width)
    const float* gate;
    const float* bias;
    float* y;
    float* state;
    uint32_t width;  // of an entry
    uint32_t ratio;
    uint32_t overlaps;
};

struct ChooseArgs {
    const Step* step;
    const Place* places;
    const float* scores;  // (rows, blocks)
    float* y;             // (rows, most)
    uint32_t blocks;      // of a context
    uint32_t most;        // that are chosen
    uint32_t ratio;
};

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
