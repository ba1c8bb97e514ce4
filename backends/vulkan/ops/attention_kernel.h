// Kernels of attention: dispatches, arguments and splits that all of Vulkan's share.
#pragma once

#include "backends/gpu/split_attention.h"
#include "steps.h"

namespace redline::vulkan {

class SplitKernel : public gpu::SplitAttention<VulkanKernel> {
protected:
    SplitKernel(const Attention& op, uint32_t dims, const Device& device)
        : SplitAttention(op, dims), wanted_(attention_groups(device)) {}

    // Push constants that all kernels have; `all`: rows that leave partial results in one place.
    template <class Args>
    Args attention_args(const View& view, uint32_t kv_heads, uint32_t all, uint32_t splits) const {
        Args push = {};
        push.heads = op_.shape.heads;
        push.kv_heads = kv_heads;
        set_rows(push, view.plan.cache(op_.cache));
        push.splits = splits;
        push.scale = op_.scale;
        push.first_stat = all * op_.shape.heads * splits * ((dims_ + 3) / 4 * 4);
        return push;
    }
    Default wanted_;  // work-groups, if there is enough to do
};

// Self has queries_of(rows), of a work-group.
template <class Self>
class RowKernel : public gpu::RowAttention<Self, SplitKernel> {
public:
    uint32_t splits(const Plan& plan, uint32_t rows) const {
        rows = plan.divided_rows(rows);
        const uint64_t groups = uint64_t(rows) * this->groups_of_row(self().queries_of(rows));
        return attention_splits(gpu::most_keys(this->op_, plan), groups * this->op_.shape.kv_heads,
                                this->chosen(row_class_of(rows), "groups", this->wanted_.value));
    }

protected:
    using gpu::RowAttention<Self, SplitKernel>::RowAttention;

    // Calls record(first, groups, flops). Rows are cut so that no dispatch alone fills a submission or is
    // higher than the device takes.
    template <typename Record>
    Status in_row_slices(Recorder& recorder, const View& view, uint32_t splits, const Record& record) const {
        const double highest = recorder.device().report().limits.maxComputeWorkGroupCount[1],
                     per_row = this->row_cost(view.plan);
        const uint64_t groups = this->groups_of_row(self().queries_of(view.rows));
        return in_slices(
            recorder, view.rows, per_row, 1,
            [&](uint32_t first, uint32_t rows) {
                return record(first, Groups{splits, rows * groups, this->op_.shape.kv_heads}, per_row * rows);
            },
            highest / double(groups));
    }

private:
    const Self& self() const { return static_cast<const Self&>(*this); }
};

}  // namespace redline::vulkan
