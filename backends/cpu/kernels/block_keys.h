// The inner kernels of scores of blocks, by level as those in kernels.h are.
#pragma once

#include "kernels.h"

namespace redline::cpu {

constexpr size_t kScoredKeys = 16;  // at a time

// y[k] = the sum over heads of weights[h] * max(q[h] . key k, 0).
struct KeyScores {
    const float* keys = nullptr;     // (dims, kScoredKeys)
    const float* q = nullptr;        // (heads, dims)
    const float* weights = nullptr;  // (heads); null: ones
    size_t heads = 0, dims = 0;
    float* y = nullptr;  // (kScoredKeys)
};

struct BlockKeyKernels {
    void (*widen)(const uint16_t* halves, size_t n, float* to);  // n: a multiple of 16
    void (*score)(const KeyScores& work);
};

const BlockKeyKernels& block_key_kernels(Isa isa);

// The levels'.
extern const BlockKeyKernels kBlockKeysAvx2, kBlockKeysAvx512;

}  // namespace redline::cpu
