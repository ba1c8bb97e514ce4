// Divides a plan over ranks that compute a part of each layer: their heads of its attention, their hidden
// units of its FFN or of each of its experts, and their rows of the output. Behind a product whose inputs
// are divided each rank has a part of every sum, and these parts are added before anything reads them.
#pragma once

#include "plan/passes/shard_axes.h"

namespace redline {

// The part of a weight that a rank has: matrices, their rows, and elements of these; an empty list means all.
// A vector has one matrix of one row.
struct WeightSlice {
    Weight of;
    Runs matrices = {}, rows = {}, cols = {};
    bool operator==(const WeightSlice&) const = default;

    bool is_whole() const { return matrices.empty() && rows.empty() && cols.empty(); }
    Shape shape(const Shape& whole) const;
};

// The part of a cache that a rank has: kv heads, or floats of a state; an empty list means all.
struct CacheSlice {
    bool is_whole = true;
    Runs parts = {};
};

// Before step `before` the rows that all ranks have of these slots are added.
struct RankSum {
    size_t before = 0;
    std::vector<Slot> slots;
    // Handed slots, for each of `slots` or none: where the sum of one row is left for that step, which takes
    // it. Declared by lower_rank().
    std::vector<Slot> leaves = {};
};

// The plan of one rank. Its slots and caches have the numbers that they have in the whole plan, with fewer
// elements and heads; slots and caches of which it has none are used by no step.
struct RankPlan {
    Plan plan;
    std::vector<WeightSlice> weights;  // for each weight of `plan`, the part of one of the whole plan
    std::vector<CacheSlice> caches;    // for each cache
    std::vector<RankSum> sums;         // in order; all ranks have as many, of the same slots
    Run outputs;                       // of the elements of the whole plan's output
};

// A plan for each of the shares, which are in proportion. With one share it is the whole plan. An error names
// the op that cannot be divided. `plan` must not have been lowered.
Result<std::vector<RankPlan>> shard(const Plan& plan, std::span<const double> shares);

}  // namespace redline
