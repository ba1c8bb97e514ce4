// One op of a plan by itself, on random inputs and weights. What chooses its kernel stays as it is: formats,
// columns, heads, and how many rows a step has at most. Matrices have fewer rows, and mixtures fewer experts,
// so that the reference can follow.
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
};

// Of a lowered plan. Nothing for ops that only write a cache: they are part of what reads it. `seed`: of the
// random numbers.
Result<std::optional<OpAlone>> op_alone(const Op& op, const Plan& plan, uint32_t seed);

// Whether results depend on what a sequence has had before.
bool has_history(const Op& op);

}  // namespace redline
