// BlockMean, BlockPool, BlockScores, ChooseBlocks and BlockAttention.
#include "steps.h"

#include <algorithm>

namespace redline::vulkan {

namespace {

constexpr uint32_t kMostHeadDim = 1024;  // elements of a query in shared memory, and a few in registers

// Calls record(first row, one behind the last, operations) for so many rows at a time that no dispatch alone
// fills a submission.
template <typename Record>
Status in_parts(Recorder& recorder, uint32_t rows, double flops_per_row, Record record) {
    const double fit = std::max(1.0, recorder.flops_per_segment() / flops_per_row);
    const uint32_t each = uint32_t(std::min(fit, double(rows)));
    for (uint32_t first = 0; first < rows; first += each) {
        const uint32_t end = std::min(first + each, rows);
        RL_TRY(record(first, end, flops_per_row * (end - first)));
    }
    return {};
}

Status record_mean(Recorder& recorder, const View& view, const BlockMean& op) {
    const args::BlockMeanArgs push = {view.width(op.x), op.ratio};
    return recorder.dispatch({"block_mean", 4, 1, {kThreads, uint32_t(view.kind)}},
                             {view.slot(op.x), view.slot(op.y), view.caches[op.state].keys, view.step}, push,
                             striding((uint64_t(push.width) * view.segments() + kThreads - 1) / kThreads));
}

Status record_pool(Recorder& recorder, const View& view, const BlockPool& op) {
    const args::BlockPoolArgs push = {view.width(op.y), op.ratio, op.overlaps};
    return recorder.dispatch({"block_pool", 6, 1, {kThreads, uint32_t(view.kind)}},
                             {view.slot(op.x), view.slot(op.gate), view.vector(op.bias, view.step),
                              view.slot(op.y), view.caches[op.state].keys, view.step},
                             push,
                             striding((uint64_t(push.width) * view.segments() + kThreads - 1) / kThreads));
}

Status record_scores(Recorder& recorder, const View& view, const BlockScores& op) {
    const CacheInfo& cache = view.plan.cache(op.cache);
    args::BlockArgs push = {};
    push.heads = op.heads;
    push.kv_heads = 1;
    push.head_dim = cache.head_dim;
    push.ratio = op.ratio;
    push.blocks = view.width(op.y);
    push.row_tokens = cache.ratio;
    push.has_weights = bool(op.weights);
    set_rows(push, cache);
    constexpr uint32_t kKeys = kThreads / 2;       // of a work-group
    const uint32_t heads = op.heads <= 8 ? 2 : 8;  // of a fourth of it, at a time
    const uint64_t tiles = (push.blocks + kKeys - 1) / kKeys;
    return in_parts(
        recorder, view.rows, 2.0 * push.blocks * op.heads * cache.head_dim,
        [&](uint32_t first, uint32_t end, double flops) {
            push.first_row = first;
            push.end_row = end;
            return recorder.dispatch(
                {cache_shader("block_scores", view, op.cache), 5, 1, {kThreads, uint32_t(view.kind), heads}},
                {view.slot(op.q), view.slot(op.y), view.step, view.caches[op.cache].keys,
                 op.weights ? view.slot(op.weights) : view.step},
                push, striding(tiles * (end - first)), flops);
        });
}

Status record_choice(Recorder& recorder, const View& view, const ChooseBlocks& op) {
    const args::ChooseArgs push = {view.width(op.scores), view.width(op.y), op.ratio};
    return recorder.dispatch({"choose_blocks", 3, 1, {kThreads, uint32_t(view.kind)}},
                             {view.slot(op.scores), view.slot(op.y), view.step}, push, striding(view.rows));
}

Status record_attention(Recorder& recorder, const View& view, const BlockAttention& op) {
    const CacheInfo& cache = view.plan.cache(op.cache);
    const auto& planes = view.caches[op.cache];
    args::BlockArgs push = {};
    push.heads = op.shape.heads;
    push.kv_heads = op.shape.kv_heads;
    push.head_dim = op.shape.head_dim;
    push.ratio = op.ratio;
    push.blocks = view.width(op.chosen);
    push.scale = op.scale;
    set_rows(push, cache);
    const double keys = (double(push.blocks) + 1) * op.ratio;
    return in_parts(recorder, view.rows, 4.0 * keys * op.shape.heads * op.shape.head_dim,
                    [&](uint32_t first, uint32_t end, double flops) {
                        push.first_row = first;
                        push.end_row = end;
                        return recorder.dispatch({cache_shader("block_attention", view, op.cache),
                                                  6,
                                                  1,
                                                  {kThreads, op.shape.head_dim, uint32_t(view.kind)}},
                                                 {view.slot(op.q), view.slot(op.chosen), view.slot(op.y),
                                                  view.step, planes.keys, planes.values},
                                                 push, striding(uint64_t(end - first) * op.shape.heads),
                                                 flops);
                    });
}

}  // namespace

std::unique_ptr<Kernel> make_block_kernel(const Op& op, const Plan&, const Device&) {
    if (const auto* o = std::get_if<BlockMean>(&op))
        return simple([o = *o](Recorder& r, const View& v) { return record_mean(r, v, o); });
    if (const auto* o = std::get_if<BlockPool>(&op))
        return simple([o = *o](Recorder& r, const View& v) { return record_pool(r, v, o); });
    if (const auto* o = std::get_if<BlockScores>(&op))
        return simple([o = *o](Recorder& r, const View& v) { return record_scores(r, v, o); });
    if (const auto* o = std::get_if<ChooseBlocks>(&op))
        return simple([o = *o](Recorder& r, const View& v) { return record_choice(r, v, o); });
    const auto* o = std::get_if<BlockAttention>(&op);
    if (!o || o->shape.head_dim > kMostHeadDim) return nullptr;
    return simple([o = *o](Recorder& r, const View& v) { return record_attention(r, v, o); });
}

}  // namespace redline::vulkan
