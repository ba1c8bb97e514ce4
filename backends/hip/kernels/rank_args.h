// The arguments of the sums over ranks, see kernels/ranks.cpp.
#pragma once

#include "args.h"  // tests include this file without the kernels' folder

namespace redline::hip::args {

constexpr uint32_t kMostRanks = 8;
constexpr uint32_t kMostRankBlocks = 256;
constexpr uint32_t kRankFlagStride = 16;  // flags lie 64 bytes apart
// Elements of a sum that rank_sum_short makes at most, and of a block of it.
constexpr uint64_t kMostShort = 1 << 16, kShortBlock = 512;

struct RankSumArgs {
    const Step* step;
    const float* x;  // of this rank
    float* y;        // the sum; it may be x
    uint32_t width;
    uint32_t of_outputs;
    uint32_t rank, ranks;
    uint32_t targets;   // memories that this rank's rows and flags go to
    uint32_t spins;     // looks at a flag before it is given up
    uint64_t half;      // elements of a half of each memory: sums use the halves in turn
    uint32_t* turns;    // for each block: the turn of the last sum
    uint32_t* trouble;  // not zero: rows did not come, and nobody waits for others
    HandOver hand;      // of rank_sum_short: where the sum of one row is left in int8, too
    // Memories of floats, or for rank_sum_short of words: a float with its turn above it.
    void* to[kMostRanks];
    const void* from[kMostRanks];  // where each rank's rows come to; of this one, not read
    // For rank_sum: set when the rows are there, one for each block.
    uint32_t* flags[kMostRanks];
    const uint32_t* seen[kMostRanks];
};

// Counts the elements of y that are not those of `want`: bit for bit, or with `most` by more than that.
struct RankCheckArgs {
    const float* y;
    const float* want;
    const float* most;
    uint64_t elements;
    uint32_t* wrong;
};

}  // namespace redline::hip::args
