// Kernels of attention: launches, arguments and splits that all of HIP's share.
#pragma once

#include "backends/gpu/split_attention.h"
#include "steps.h"

namespace redline::hip {

// The same numbers as in kernels/attention_few.h, latent.h and entries.h.
constexpr uint32_t kAttentionThreads = 256;
constexpr uint64_t kLeastKeys = 64;

class SplitKernel : public gpu::SplitAttention<HipKernel> {
protected:
    SplitKernel(const Attention& op, uint32_t dims, const Device& device)
        : SplitAttention(op, dims),
          units_(std::max(4u, device.report().multiprocessors)),
          per_launch_(flops_per_launch(device.report())) {}

    // All but which rows a launch has.
    args::AttentionArgs attention_args(const View& view, uint32_t rows, uint32_t splits) const {
        args::AttentionArgs args = {};
        args.step = view.step;
        args.q = view.slot(op_.q);
        args.y = view.slot(op_.y);
        args.sinks = view.vector(op_.sinks);
        args.partials = view.scratch_at(0);
        args.counters = view.caches.counters();
        args.cache = view.cache(op_.cache);
        args.rows = rows;
        args.heads = op_.shape.heads;
        args.splits = splits;
        args.scale = op_.scale;
        return args;
    }
    // Enough blocks to fill the device, but no more than there are keys for. Those without keys end at once.
    uint32_t splits_for(uint64_t keys, uint64_t least, uint64_t blocks, uint32_t rows, uint64_t most) const {
        const uint32_t per_unit = chosen(row_class_of(rows), "per_unit", usual_per_unit().value);
        return gpu::key_splits(keys, least, blocks, uint64_t(units_) * per_unit, most, true);
    }
    // Where the last block merges splits, there must be counters for them.
    static uint64_t counted(uint64_t blocks, uint64_t most) {
        return blocks > HipCaches::kCounters ? 1 : most;
    }

    uint32_t units_;  // multiprocessors
    double per_launch_;
};

// Self has queries(rows), of a block, and the most splits, kMostSplits.
template <class Self>
class RowKernel : public gpu::RowAttention<Self, SplitKernel> {
public:
    uint32_t splits(const Plan& plan, uint32_t rows) const {
        rows = plan.divided_rows(rows);
        const uint32_t groups = this->groups_of_row(self().queries(rows));
        const uint64_t all =
            uint64_t(std::min(rows, rows_of_launch(plan, groups))) * groups * this->op_.shape.kv_heads;
        return this->splits_for(gpu::most_keys(this->op_, plan), kLeastKeys, all, rows,
                                this->counted(all, Self::kMostSplits));
    }

protected:
    using gpu::RowAttention<Self, SplitKernel>::RowAttention;

    // `heads`: of `args`, which is what the kernel is told.
    template <class Args>
    Status launch_rows(Launcher& launcher, const View& view, const std::string& stem, Args& args,
                       args::AttentionArgs& heads, uint32_t shared = 0) const {
        const Attention& op = this->op_;
        const std::string module = cache_module(view, op.cache), kernel = cache_kernel(stem, view, op.cache);
        heads.row_groups = this->groups_of_row(self().queries(view.rows));
        return in_slices(view.rows, rows_of_launch(view.plan, heads.row_groups),
                         [&](uint32_t first, uint32_t rows) {
                             heads.first_row = first;
                             heads.groups = rows * heads.row_groups;
                             return launcher.launch(
                                 module, kernel,
                                 {heads.splits, heads.groups, op.shape.kv_heads, kAttentionThreads, shared},
                                 args, this->row_cost(view.plan) * rows);
                         });
    }

private:
    const Self& self() const { return static_cast<const Self&>(*this); }
    // Rows are cut so that no launch takes long or is too high.
    uint32_t rows_of_launch(const Plan& plan, uint32_t groups) const {
        return slice_of(this->per_launch_, this->row_cost(plan), 1, double(kMostHigh) / groups);
    }
};

}  // namespace redline::hip
