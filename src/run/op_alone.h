// One op of a plan by itself, or two of which one leaves its row in int8 for the other, on random inputs and
// weights. What chooses their kernels stays as it is: formats, columns, heads, and how many rows a step has
// at most. Matrices have fewer rows, and mixtures fewer experts, so that the reference can follow.
#pragma once

#include "cases/op_case.h"

namespace redline {

struct OpAlone {
    static constexpr uint64_t kTokens = 64, kPositions = 512;  // that there are

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
Result<OpAlone> op_alone(const Op& op, const Plan& plan, uint32_t seed);

// Of two steps of a lowered plan for one row: the op of `to` takes in int8 what that of `from` leaves. The
// step is that of `to`. `few_columns`: the matrices of `from`, whose rows are all there, have fewer columns.
Result<OpAlone> pair_alone(const Op& from, const Op& to, const Plan& plan, uint32_t seed, bool few_columns);

// Whether results depend on what a sequence has had before.
bool has_history(const Op& op);

}  // namespace redline
