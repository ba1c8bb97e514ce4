// BlockScores, and attention to blocks.
#include "attention_kernel.h"

#include <algorithm>

namespace redline::vulkan {

namespace {

constexpr uint32_t kMostBlockHeadDim = 1024;  // elements of a query in shared memory, and a few in registers

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
    const double per_row = 2.0 * push.blocks * op.heads * cache.head_dim;
    return in_slices(recorder, view.rows, per_row, 1, [&](uint32_t first, uint32_t rows) {
        push.first_row = first;
        push.end_row = first + rows;
        return recorder.dispatch(
            {cache_shader("block_scores", view, op.cache), 5, 1, {kThreads, uint32_t(view.kind), heads}},
            {view.slot(op.q), view.slot(op.y), view.step, view.caches[op.cache].keys,
             op.weights ? view.slot(op.weights) : view.step},
            push, striding(tiles * rows), per_row * rows);
    });
}

Status record_attention(Recorder& recorder, const View& view, const Attention& op) {
    const CacheInfo& cache = view.plan.cache(op.cache);
    const auto& planes = view.caches[op.cache];
    args::BlockArgs push = {};
    push.heads = op.shape.heads;
    push.kv_heads = op.shape.kv_heads;
    push.head_dim = op.shape.head_dim;
    push.ratio = op.keys.ratio;
    push.blocks = view.width(op.keys.chosen);
    push.scale = op.scale;
    set_rows(push, cache);
    const double per_row =
        4.0 * (double(push.blocks) + 1) * op.keys.ratio * op.shape.heads * op.shape.head_dim;
    return in_slices(recorder, view.rows, per_row, 1, [&](uint32_t first, uint32_t rows) {
        push.first_row = first;
        push.end_row = first + rows;
        return record_cached(recorder, view, op.cache, "block_attention",
                             {kThreads, op.shape.head_dim, uint32_t(view.kind)},
                             {view.slot(op.q), view.slot(op.keys.chosen), view.slot(op.y), view.step,
                              planes.keys, planes.values},
                             push, striding(uint64_t(rows) * op.shape.heads), per_row * rows);
    });
}

// Heads of a row that share a kv head read the keys of its blocks together.
class BlockFewKernel : public RowKernel<BlockFewKernel> {
public:
    BlockFewKernel(const Attention& op, const Device& device)
        : RowKernel(op, op.shape.head_dim, device),
          threads_(few_threads(device).value),
          room_(std::min<uint64_t>(device.report().limits.maxComputeSharedMemorySize, 32768)) {}

    static bool fits(const Attention& op) {
        return op.shape.head_dim % 16 == 0 && op.shape.head_dim <= kMostFewHeadDim;
    }

    Choices choices(RowClass) const override {
        const uint32_t most = queries(kMostFewQueries);
        const Default usual =
            gpu::default_of(gpu::kAttentionDefaults, "queries", {}, {.rows = RowClass::few, .most = most});
        return {groups_choice(wanted_), choice("queries", usual, gpu::halves_of(most / 2))};
    }

    Status record(Recorder& recorder, const View& view) const override {
        const auto& planes = view.caches[op_.cache];
        auto push = attention_args<args::BlockFewArgs>(view, op_.shape.kv_heads, view.rows,
                                                       splits(view.plan, view.rows));
        push.ratio = op_.keys.ratio;
        push.most = view.width(op_.keys.chosen);
        const Binding partials = claim_partials(recorder, view, partial_bytes(view.rows, push.splits));
        const auto record_rows = [&](uint32_t first, const Groups& groups, double flops) {
            push.first_row = first;
            return record_cached(
                recorder, view, op_.cache, "block_few",
                {threads_, op_.shape.head_dim, queries_of(view.rows), uint32_t(view.kind), group()},
                {view.slot(op_.q), view.slot(op_.y), view.step, planes.keys, planes.values,
                 view.slot(op_.keys.chosen), partials, view.caches.counters()},
                push, groups, flops);
        };
        return in_row_slices(recorder, view, push.splits, record_rows);
    }

    uint32_t queries_of(uint32_t rows) const {
        return queries(chosen(row_class_of(rows), "queries", kMostFewQueries));
    }

private:
    // Of a work-group: as many as share a kv head, as far as shared memory goes.
    uint32_t queries(uint32_t most) const {
        const auto bytes = [&](uint32_t n) {
            return few_shared(op_.shape.head_dim, n, threads_) + threads_;  // and places of keys
        };
        uint32_t n = 1;
        while (n < most && n < group() && bytes(2 * n) <= room_) n *= 2;
        return n;
    }

    uint32_t threads_;
    uint64_t room_;  // of shared memory
};

}  // namespace

std::unique_ptr<Kernel> make_block_kernel(const Op& op, const Plan&, const Device& device) {
    if (auto kernel = gpu::first_of<Gpu>(op, record_scores)) return kernel;
    const auto* o = attention_to(Keys::blocks, op);
    if (!o || o->shape.head_dim > kMostBlockHeadDim) return nullptr;
    if (BlockFewKernel::fits(*o)) return std::make_unique<BlockFewKernel>(*o, device);
    return simple([o = *o](Recorder& r, const View& v) { return record_attention(r, v, o); });
}

}  // namespace redline::vulkan
