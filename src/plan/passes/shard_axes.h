// Which slots of a plan can be divided over ranks, and where: heads of attentions, hidden units of FFNs and
// experts, rows of the output. Found for the whole plan before an op is changed.
#pragma once

#include "plan/plan.h"

namespace redline {

// Elements, rows or matrices [first, first + count).
struct Run {
    uint64_t first = 0, count = 0;
    auto operator<=>(const Run&) const = default;
};
using Runs = std::vector<Run>;

uint64_t length_of(const Runs& runs);

// The elements of a row that belong to the units of an axis: unit u has `each` from first + u * each on.
struct Stripe {
    uint64_t first = 0, each = 0;
    bool operator==(const Stripe&) const = default;
};
using Stripes = std::vector<Stripe>;

// Units that ranks share out: kv heads with their queries, hidden units, rows of the output.
struct Axis {
    uint32_t units = 0;
    uint64_t grain = 1;       // so many stay together, since blocks of a format cannot be cut
    uint64_t soft_grain = 1;  // likewise where there are enough of them, for kernels
    uint64_t layer = 0;
    bool of_heads = false;            // of an attention
    std::vector<uint32_t> ends = {};  // for each rank the unit behind its last

    Run of(size_t rank) const {
        const uint32_t first = rank == 0 ? 0 : ends[rank - 1];
        return {first, ends[rank] - first};
    }
};

class Axes {
public:
    // `shares`: of each rank, in proportion. An error names the op that cannot be divided.
    static Result<Axes> find(const Plan& plan, std::span<const double> shares);

    const std::vector<Axis>& all() const { return axes_; }
    bool cuts(Slot slot) const { return slots_[size_t(slot.index)].axis >= 0; }
    const Axis& axis_of(Slot slot) const { return axes_[size_t(slots_[size_t(slot.index)].axis)]; }
    const Stripes& stripes_of(Slot slot) const { return slots_[size_t(slot.index)].stripes; }
    // The elements that a rank has of a row of a slot that is cut.
    Runs runs_of(Slot slot, size_t rank) const { return runs_of(axis_of(slot), stripes_of(slot), rank); }
    static Runs runs_of(const Axis& axis, const Stripes& stripes, size_t rank);
    // Elements that a rank has of a row.
    uint64_t width_of(const Plan& plan, Slot slot, size_t rank) const {
        return cuts(slot) ? length_of(runs_of(slot, rank)) : plan.slot(slot).width;
    }

private:
    friend class AxisFinder;
    struct Cutting {
        int32_t axis = -1;
        Stripes stripes;
    };
    std::vector<Axis> axes_;
    std::vector<Cutting> slots_;
};

// The stripes of one of `parts` equal parts of a row that all are cut alike; empty: they are not.
Stripes stripes_of_part(const Stripes& whole, uint64_t width, uint64_t parts);

}  // namespace redline
