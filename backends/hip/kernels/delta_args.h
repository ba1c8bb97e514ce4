// What the kernels of the gated delta rule are told, and what they leave each other: see args.h.
#pragma once

#include "kernels/args.h"

namespace redline::hip::args {

constexpr uint32_t kDeltaRows = 8;  // that the delta rule takes at once

// What kDeltaRows rows of a sequence see of each other with a head's gates. Queries and keys are as they
// came, and what would make unit vectors of them is a factor of all that comes of them.
struct alignas(16) DeltaPairs {
    // [t][s]: the product of t's key, or query, and s's key, times both factors, the decays between and, of
    // keys, t's gate; 0 for s behind t, of keys at t.
    float by_keys[kDeltaRows][kDeltaRows], by_queries[kDeltaRows][kDeltaRows];
    // The product of decays up to a row, times its gate and its key's factor, and times its query's factor.
    float seen_by[kDeltaRows], read_by[kDeltaRows];
    float left[kDeltaRows];  // what a row's change counts behind all rows
    float gates[kDeltaRows];
    float decay[4];  // of all rows, and nothing
};

struct DeltaArgs {
    const Step* step;
    const SegmentState* states;
    DeltaPairs* pairs;  // of rows 8 n .. of each head, where its sequence has as many
    const float* qkv;
    const float* beta;
    const float* alpha;
    const float* a;
    const float* dt;
    float* y;
    float* state;  // rows of (heads, key_dim, value_dim)
    uint32_t heads;
    uint32_t key_heads;
    uint32_t key_dim;
    uint32_t value_dim;
    uint32_t in_turns;
    uint32_t first_row;  // of the step: rows first_row .. end_row - 1
    uint32_t end_row;
    float eps;
};

}  // namespace redline::hip::args
