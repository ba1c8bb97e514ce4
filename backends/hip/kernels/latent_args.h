// Arguments of the kernels of attention on latents.
#pragma once

#include "kernels/args.h"

namespace redline::hip::args {

// Attention on latents, as that of heads whose one kv head has values of their rank.
struct LatentArgs {
    AttentionArgs heads;
    Cache latents;  // the rows as they are
};
constexpr uint32_t kLatentStep = 64;  // queries take a multiple of so many floats of shared memory
constexpr uint32_t kLatentMostSplits = 128;
// On matrix units: keys of a tile, and what a tile takes of shared memory, along keys or turned round.
constexpr uint32_t kLatentTileKeys = 32, kLatentTileBytes = 40 << 10;

// How the splits of all rows come together: a block for kMergeFours times four elements of a query.
struct LatentMergeArgs {
    AttentionArgs heads;
    uint32_t queries;  // of a block of the attention
    uint32_t unit;     // keys of which its splits are multiples
};
constexpr uint32_t kMergeFours = 32;

}  // namespace redline::hip::args
