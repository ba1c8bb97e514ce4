// BlockScores, and attention to blocks.
#include "attention_kernel.h"
#include "backends/hip/kernels/block_args.h"

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

// Of heads of whole eights: those of a row that share a kv head read the keys of its blocks together.
class BlockFewKernel : public RowKernel<BlockFewKernel> {
public:
    static constexpr uint32_t kMostSplits = 64;  // as kernels/attention_few.h has it

    BlockFewKernel(const Attention& op, const Device& device) : RowKernel(op, op.shape.head_dim, device) {}

    static bool fits(const Attention& op) { return op.shape.head_dim % 8 == 0; }

    Choices choices(RowClass) const override { return {choice("per_unit", usual_per_unit(), {1, 4, 8})}; }

    Status launch(Launcher& launcher, const View& view) const override {
        args::BlockFewArgs args = {};
        args.heads = attention_args(view, view.rows, splits(view.plan, view.rows));
        args.chosen = view.slot(op_.keys.chosen);
        args.most = view.width(op_.keys.chosen);
        args.ratio = op_.keys.ratio;
        return launch_rows(launcher, view, fmt::format("block_few_{}_{}", queries(view.rows), kernel_dims()),
                           args, args.heads);
    }

    uint32_t queries(uint32_t) const { return kernel_dims() <= 128 ? 8 : kernel_dims() == 256 ? 4 : 2; }

private:
    // The head sizes that kernels are built for are upper bounds.
    uint32_t kernel_dims() const {
        return dims_ <= 64 ? 64 : dims_ <= 128 ? 128 : dims_ <= 256 ? 256 : kMostHeadDim;
    }
};

// Kernels number the bytes of a head with words.
bool too_long(const Plan& plan, Cache cache) {
    return plan.cache(cache).capacity * plan.cache(cache).head_dim * 4 > UINT32_MAX;
}

}  // namespace

std::unique_ptr<Kernel> make_block_kernel(const Op& op, const Plan& plan, const Device& device) {
    if (const auto* o = std::get_if<BlockScores>(&op); o && too_long(plan, o->cache)) return nullptr;
    if (auto kernel = gpu::first_of<Gpu>(op, launch_scores)) return kernel;
    const auto* o = attention_to(Keys::blocks, op);
    if (!o || o->shape.head_dim > kMostHeadDim || too_long(plan, o->cache)) return nullptr;
    if (BlockFewKernel::fits(*o)) return std::make_unique<BlockFewKernel>(*o, device);
    return simple([o = *o](Launcher& l, const View& v) { return launch_attention(l, v, o); });
}

}  // namespace redline::hip
