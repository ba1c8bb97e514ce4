// One op of a plan by itself, or two of which one leaves its row in int8 for the other, on random inputs and
// weights. What chooses their kernels stays as it is: formats, columns, heads, and how many rows a step has
// at most. Matrices have fewer rows, and mixtures fewer experts, so that the reference can follow.
#pragma once

#include "measure/op_case.h"

namespace redline {

// What is left of an op's matrices.
struct AloneSize {
    uint64_t rows = 64;            // at least these, of those that there are,
    uint64_t elements = 0;         // and as many as have so many elements together
    uint64_t inner = 256;          // of the experts of a block: a multiple of every format's block
    uint64_t further_experts = 2;  // beside as many as a token uses, if there are so many
};

struct OpAlone {
    static constexpr uint64_t kTokens = 64, kPositions = 512;  // that there are
    static constexpr uint64_t kMostPositions = 8192;           // of a repeated op
    // Of the elements of its matrices; no multiple of a row.
    static constexpr uint64_t kDistinct = uint64_t(8191) * 256;

    Fixture fixture;
    Plan plan;
    size_t step = 0;            // of the plan, that is the op
    std::vector<Slot> written;  // that are compared
    Slot ids;                   // one of these, if what it holds is ids of experts
    uint32_t sequences = 0;     // that share the caches in pages; 0: there is one, without pages
};

// Whether it can be: ops that only write a cache are part of what reads it.
bool stands_alone(const Op& op);
// Of a lowered plan. `seed`: of the random numbers.
Result<OpAlone> op_alone(const Op& op, const Plan& plan, uint32_t seed, const AloneSize& size = {});
// The same op again and again, in one step: `bytes` of copies of its weights and caches take turns,
// so that they are read from memory and not from the device's caches. The step is that of the last. Matrices
// repeat themselves, since nothing is held to the reference.
Result<OpAlone> op_repeated(const Op& op, const Plan& plan, uint32_t seed, const AloneSize& size,
                            uint32_t times, uint64_t bytes);

// Of two steps of a lowered plan for one row: the op of `to` takes in int8 what that of `from` leaves. The
// step is that of `to`. `few_columns`: the matrices of `from`, whose rows are all there, have fewer columns.
Result<OpAlone> pair_alone(const Op& from, const Op& to, const Plan& plan, uint32_t seed, bool few_columns);

// Several ops of a lowered plan, one after the other in a step, each on inputs of its own; to be timed.
Result<OpAlone> ops_together(std::span<const Op> ops, const Plan& plan, uint32_t seed);

// Whether results depend on what a sequence has had before.
bool has_history(const Op& op);

}  // namespace redline
