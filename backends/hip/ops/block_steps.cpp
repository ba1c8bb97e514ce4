// BlockMean, BlockPool, BlockScores, ChooseBlocks and BlockAttention.
#include "backends/hip/kernels/block_args.h"
#include "steps.h"

#include <algorithm>

namespace redline::hip {

namespace {

constexpr uint32_t kMostHeadDim = 512;  // as kernels/blocks.h has it

Status launch_mean(Launcher& launcher, const View& view, const BlockMean& op) {
    const args::BlockMeanArgs args = {view.step,        view.states,
                                      view.places,      view.slot(op.x),
                                      view.slot(op.y),  reinterpret_cast<float*>(view.caches[op.state].keys),
                                      view.width(op.x), op.ratio};
    return launcher.launch("recurrent", "block_mean",
                           striding(blocks_for(uint64_t(args.width) * view.segments(), kThreads)), args);
}

Status launch_pool(Launcher& launcher, const View& view, const BlockPool& op) {
    const args::BlockPoolArgs args = {
        view.step,          view.states,
        view.places,        view.slot(op.x),
        view.slot(op.gate), view.vector(op.bias),
        view.slot(op.y),    reinterpret_cast<float*>(view.caches[op.state].keys),
        view.width(op.y),   op.ratio,
        op.overlaps};
    return launcher.launch("recurrent", "block_pool",
                           striding(blocks_for(uint64_t(args.width) * view.segments(), kThreads)), args);
}

Status launch_choice(Launcher& launcher, const View& view, const ChooseBlocks& op) {
    const args::ChooseArgs args = {view.step,       view.places,           view.slot(op.scores),
                                   view.slot(op.y), view.width(op.scores), view.width(op.y),
                                   op.ratio};
    return launcher.launch("recurrent", "choose_blocks", striding(view.rows), args);
}

// So many rows at a time that no launch alone takes too long; of each row `units` blocks of threads.
Status launch_rows(Launcher& launcher, const View& view, const char* stem, Cache cache, args::BlockArgs args,
                   uint64_t units, double flops_per_row) {
    const double fit = std::max(1.0, flops_per_launch(launcher.device().report()) / flops_per_row);
    const uint32_t each = uint32_t(std::min(fit, double(view.rows)));
    for (uint32_t row = 0; row < view.rows; row += each) {
        args.first_row = row;
        args.end_row = std::min(row + each, view.rows);
        const uint32_t rows = args.end_row - row;
        RL_TRY(launcher.launch(cache_module(view, cache), cache_kernel(stem, view, cache),
                               striding(blocks_for(units * rows, 1)), args, flops_per_row * rows));
    }
    return {};
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

Status launch_attention(Launcher& launcher, const View& view, const BlockAttention& op) {
    const uint32_t blocks = view.width(op.chosen);
    const args::BlockArgs args = {view.step,
                                  view.slot(op.q),
                                  view.slot(op.chosen),
                                  view.slot(op.y),
                                  view.cache(op.cache),
                                  op.shape.heads,
                                  op.ratio,
                                  blocks,
                                  0,
                                  0,
                                  op.scale,
                                  1,
                                  nullptr};
    const double keys = (double(blocks) + 1) * op.ratio;
    return launch_rows(launcher, view, "block_attention", op.cache, args, op.shape.heads,
                       4.0 * keys * op.shape.heads * op.shape.head_dim);
}

// Kernels number the bytes of a head with words.
bool too_long(const Plan& plan, Cache cache) {
    return plan.cache(cache).capacity * plan.cache(cache).head_dim * 4 > UINT32_MAX;
}

}  // namespace

std::unique_ptr<Kernel> make_block_kernel(const Op& op, const Plan& plan, const Device&) {
    if (const auto* o = std::get_if<BlockMean>(&op))
        return simple([o = *o](Launcher& l, const View& v) { return launch_mean(l, v, o); });
    if (const auto* o = std::get_if<BlockPool>(&op))
        return simple([o = *o](Launcher& l, const View& v) { return launch_pool(l, v, o); });
    if (const auto* o = std::get_if<ChooseBlocks>(&op))
        return simple([o = *o](Launcher& l, const View& v) { return launch_choice(l, v, o); });
    if (const auto* o = std::get_if<BlockScores>(&op)) {
        if (too_long(plan, o->cache)) return nullptr;
        return simple([o = *o](Launcher& l, const View& v) { return launch_scores(l, v, o); });
    }
    const auto* o = std::get_if<BlockAttention>(&op);
    if (!o || o->shape.head_dim > kMostHeadDim || too_long(plan, o->cache)) return nullptr;
    return simple([o = *o](Launcher& l, const View& v) { return launch_attention(l, v, o); });
}

}  // namespace redline::hip
