// A plan of a single op, or of two of which one writes its row as int8 for the other, on random inputs and
// weights. Everything that selects their kernels is kept: formats, columns, heads, and the most rows of a
// step. Matrices have fewer rows, and mixtures fewer experts, so that the reference is fast enough.
#pragma once

#include "measure/op_case.h"

namespace redline {

// The size to which an op's matrices are reduced.
struct AloneSize {
    uint64_t rows = 64;            // at least so many rows, of those that there are,
    uint64_t elements = 0;         // and enough for so many elements
    uint64_t inner = 256;          // rows of a block's experts: a multiple of every format's block
    uint64_t further_experts = 2;  // in addition to those that a token uses, if there are so many
};

struct OpAlone {
    static constexpr uint64_t kTokens = 64, kPositions = 512;  // in the plan
    static constexpr uint64_t kMostPositions = 8192;           // for a repeated op
    // Matrix elements that differ before they repeat; no multiple of a row.
    static constexpr uint64_t kDistinct = uint64_t(8191) * 256;

    Fixture fixture;
    Plan plan;
    size_t step = 0;            // index of the op in the plan
    std::vector<Slot> written;  // slots to compare
    Slot ids;                   // one of `written` that holds expert ids, if any
    uint32_t sequences = 0;     // that share the caches in pages; 0: one sequence, without pages
};

// True when an op can be tested alone: ops that only write a cache are tested with an op that reads it.
bool stands_alone(const Op& op);
// The plan must be lowered. `seed` seeds the random numbers.
Result<OpAlone> op_alone(const Op& op, const Plan& plan, uint32_t seed, const AloneSize& size = {});
// The same op many times in one step: it cycles through copies of its weights and caches of `bytes` in all,
// so that they are read from memory and not from the device's caches. `step` is the last one. Matrices repeat
// themselves, since nothing is compared with the reference.
Result<OpAlone> op_repeated(const Op& op, const Plan& plan, uint32_t seed, const AloneSize& size,
                            uint32_t times, uint64_t bytes);

// Two steps of a lowered plan for one row: the op `to` takes the row of `from` as int8. `step` is that of
// `to`. `few_columns`: the matrices of `from` have all rows, and fewer columns.
Result<OpAlone> pair_alone(const Op& from, const Op& to, const Plan& plan, uint32_t seed, bool few_columns);

// Several ops of a lowered plan, one after the other in a step, each on separate inputs; for timing.
Result<OpAlone> ops_together(std::span<const Op> ops, const Plan& plan, uint32_t seed);

// True when results depend on earlier tokens of the sequence.
bool has_history(const Op& op);

}  // namespace redline
