// The arguments of the sum over ranks, see kernels/ranks.cpp.
#pragma once

#include "kernels/args.h"

namespace redline::hip::args {

constexpr uint32_t kMostRanks = 8;
constexpr uint32_t kMostRankBlocks = 256;
constexpr uint32_t kRankFlagStride = 16;  // flags lie 64 bytes apart

struct RankSumArgs {
    const Step* step;
    float* y;
    uint32_t width;
    uint32_t of_outputs;
    uint32_t rank, ranks;
    uint32_t targets;   // memories that this rank's rows and flags go to
    uint32_t spins;     // looks at a flag before it is given up
    uint64_t half;      // floats of a half of each memory: sums use the halves in turn
    uint32_t* turns;    // for each block: how many sums were made
    uint32_t* trouble;  // not zero: rows did not come, and nobody waits for others
    float* to[kMostRanks];
    uint32_t* flags[kMostRanks];       // set when the rows are there, one for each block; as many as `to`
    const float* from[kMostRanks];     // where each rank's rows come to; of this one, not read
    const uint32_t* seen[kMostRanks];  // and its flags
};

}  // namespace redline::hip::args
