// Kernels of attention whose keys are split between work-groups: facts and counts that both backends share.
#pragma once

#include "backends/gpu/key_splits.h"

namespace redline::gpu {

template <class GpuKernel>
class SplitAttention : public GpuKernel {
protected:
    // `dims`: of what a head results in.
    SplitAttention(const Attention& op, uint32_t dims) : op_(op), dims_(dims) {}

    uint32_t group() const { return op_.shape.heads / op_.shape.kv_heads; }
    // The scratch that splits of so many rows leave their results in.
    uint64_t partial_bytes(uint64_t rows, uint32_t splits) const {
        return split_bytes(rows, op_.shape.heads, splits, dims_);
    }

    Attention op_;
    uint32_t dims_;
};

// Attention whose rows see different keys (blocks or entries that were chosen): a group of queries is of one
// row. Self has splits(plan, rows).
template <class Self, class Split>
class RowAttention : public Split {
public:
    uint64_t scratch(const Plan& plan) const override {
        const Self& self = static_cast<const Self&>(*this);
        return most_of_steps(
            plan, [&](uint32_t rows) { return this->partial_bytes(rows, self.splits(plan, rows)); });
    }

protected:
    using Split::Split;

    uint32_t groups_of_row(uint32_t queries) const { return query_groups(1, this->group(), queries, false); }
    double row_cost(const Plan& plan) const {
        return 4.0 * this->op_.shape.heads * this->dims_ * double(most_keys(this->op_, plan));
    }
};

}  // namespace redline::gpu
