// BlockMean, BlockPool, BlockScores, ChooseBlocks, and attention to blocks.
#include "backends/hip/kernels/block_args.h"
#include "steps.h"

#include <algorithm>

namespace redline::hip {

namespace {

constexpr uint32_t kMostHeadDim = 512;  // as kernels/blocks.h has it

// So many rows at a time that no launch alone takes too long; of each row `units` blocks of threads.
Status launch_rows(Launcher& launcher, const View& view, const char* stem, Cache cache, args::BlockArgs args,
                   uint64_t units, double flops_per_row) {
    return in_slices(launcher, view.rows, flops_per_row, 1, [&](uint32_t row, uint32_t rows) {
        args.first_row = row;
        args.end_row = row + rows;
        return launcher.launch(cache_module(view, cache), cache_kernel(stem, view, cache),
                               striding(blocks_for(units * rows, 1)), args, flops_per_row * rows);
    });
}

Status launch_scores(Launcher& launcher, const View& view, const BlockScores& op) {
    const uint32_t blocks = view.width(op.y), dims = view.plan.cache(op.cache).head_dim;
    const args::BlockArgs args = {view.step,
                                  view.slot(op.q),
                                  nullptr,
                                  view.slot(op.y),
                                  view.cache(op.cache),
                                  op.heads,
                                  op.ratio,
                                  blocks,
                                  0,
                                  0,
                                  1.0f,
                                  view.plan.cache(op.cache).ratio,
                                  op.weights ? view.slot(op.weights) : nullptr};
    constexpr uint32_t kKeys = 64;  // as kernels/blocks.h has them
    return launch_rows(launcher, view, "block_scores", op.cache, args, blocks_for(blocks, kKeys),
                       2.0 * blocks * op.heads * dims);
}

Status launch_attention(Launcher& launcher, const View& view, const Attention& op) {
    const uint32_t blocks = view.width(op.keys.chosen);
    const args::BlockArgs args = {view.step,
                                  view.slot(op.q),
                                  view.slot(op.keys.chosen),
                                  view.slot(op.y),
                                  view.cache(op.cache),
                                  op.shape.heads,
                                  op.keys.ratio,
                                  blocks,
                                  0,
                                  0,
                                  op.scale,
                                  1,
                                  nullptr};
    const double keys = (double(blocks) + 1) * op.keys.ratio;
    return launch_rows(launcher, view, "block_attention", op.cache, args, op.shape.heads,
                       4.0 * keys * op.shape.heads * op.shape.head_dim);
}

// As kernels/attention_few.h has them.
constexpr uint32_t kBlockFewThreads = 256;
constexpr uint32_t kBlockFewSplits = 64;
constexpr uint64_t kBlockFewLeastKeys = 64;
constexpr uint32_t kBlockGroupsPerUnit = 2;  // that fit into a multiprocessor at a time

// Of heads of whole eights: those of a row that share a kv head read the keys of its blocks together.
class BlockFewKernel : public HipKernel {
public:
    BlockFewKernel(const Attention& op, const Device& device)
        : op_(op),
          units_(std::max(4u, device.report().multiprocessors)),
          per_launch_(flops_per_launch(device.report())) {}

    static bool fits(const Attention& op) { return op.shape.head_dim % 8 == 0; }

    Choices choices(RowClass) const override { return {choice("per_unit", kBlockGroupsPerUnit, {1, 4, 8})}; }

    uint64_t scratch(const Plan& plan) const override {
        return gpu::most_of_steps(plan, [&](uint32_t rows) {
            return gpu::split_bytes(rows, op_.shape.heads, splits(plan, rows), op_.shape.head_dim);
        });
    }

    Status launch(Launcher& launcher, const View& view) const override {
        args::BlockFewArgs args = {};
        args.chosen = view.slot(op_.keys.chosen);
        args.most = view.width(op_.keys.chosen);
        args.ratio = op_.keys.ratio;
        args::AttentionArgs& heads = args.heads;
        heads.step = view.step;
        heads.q = view.slot(op_.q);
        heads.y = view.slot(op_.y);
        heads.partials = view.scratch_at(0);
        heads.counters = view.caches.counters();
        heads.cache = view.cache(op_.cache);
        heads.rows = view.rows;
        heads.heads = op_.shape.heads;
        heads.splits = splits(view.plan, view.rows);
        heads.scale = op_.scale;
        heads.row_groups = groups_of_row();
        return in_slices(view.rows, rows_of_launch(view.plan), [&](uint32_t first, uint32_t rows) {
            heads.first_row = first;
            heads.groups = rows * heads.row_groups;
            return launcher.launch(
                cache_module(view, op_.cache),
                cache_kernel(fmt::format("block_few_{}_{}", queries(), dims()), view, op_.cache),
                {heads.splits, heads.groups, op_.shape.kv_heads, kBlockFewThreads}, args,
                row_cost(view.plan) * rows);
        });
    }

private:
    // The head sizes that kernels are built for are upper bounds.
    uint32_t dims() const {
        const uint32_t own = op_.shape.head_dim;
        return own <= 64 ? 64 : own <= 128 ? 128 : own <= 256 ? 256 : kMostHeadDim;
    }
    uint32_t queries() const { return dims() <= 128 ? 8 : dims() == 256 ? 4 : 2; }
    uint32_t groups_of_row() const {
        return gpu::query_groups(1, op_.shape.heads / op_.shape.kv_heads, queries(), false);
    }
    double row_cost(const Plan& plan) const {
        return 4.0 * op_.shape.heads * op_.shape.head_dim * double(gpu::most_keys(op_, plan));
    }
    // Rows are cut so that no launch takes long or is too high.
    uint32_t rows_of_launch(const Plan& plan) const {
        return slice_of(per_launch_, row_cost(plan), 1, double(kMostHigh) / groups_of_row());
    }
    // Enough blocks to fill the device, but no more than there are keys for, and none where there are too few
    // counters for them. Those without keys end at once.
    uint32_t splits(const Plan& plan, uint32_t rows) const {
        rows = plan.divided_rows(rows);
        const uint64_t all =
            uint64_t(std::min(rows, rows_of_launch(plan))) * groups_of_row() * op_.shape.kv_heads;
        const uint32_t per_unit = chosen(row_class_of(rows), "per_unit", kBlockGroupsPerUnit);
        return gpu::key_splits(gpu::most_keys(op_, plan), kBlockFewLeastKeys, all, units_ * per_unit,
                               all > HipCaches::kCounters ? 1 : kBlockFewSplits, true);
    }

    Attention op_;
    uint32_t units_;  // multiprocessors
    double per_launch_;
};

// Kernels number the bytes of a head with words.
bool too_long(const Plan& plan, Cache cache) {
    return plan.cache(cache).capacity * plan.cache(cache).head_dim * 4 > UINT32_MAX;
}

}  // namespace

std::unique_ptr<Kernel> make_block_kernel(const Op& op, const Plan& plan, const Device& device) {
    if (const auto* o = std::get_if<BlockScores>(&op); o && too_long(plan, o->cache)) return nullptr;
    if (auto kernel = gpu::first_of<Gpu>(op, plain<args::BlockMeanArgs, BlockMean>,
                                         plain<args::BlockPoolArgs, BlockPool>,
                                         plain<args::ChooseArgs, ChooseBlocks>, launch_scores))
        return kernel;
    const auto* o = attention_to(Keys::blocks, op);
    if (!o || o->shape.head_dim > kMostHeadDim || too_long(plan, o->cache)) return nullptr;
    if (BlockFewKernel::fits(*o)) return std::make_unique<BlockFewKernel>(*o, device);
    return simple([o = *o](Launcher& l, const View& v) { return launch_attention(l, v, o); });
}

}  // namespace redline::hip
