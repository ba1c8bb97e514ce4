// HeadLinear, LatentStore and LatentAttention.
#include "steps.h"

#include <algorithm>

namespace redline::hip {

namespace {

constexpr uint32_t kTile = 64;       // of head_tile, both ways
constexpr uint32_t kHeadTokens = 4;  // of head_4
constexpr uint32_t kHeadLanes = 4;   // that share a row, on all devices
// As kernels/latent.h has them.
constexpr uint32_t kLatentThreads = 256;
constexpr uint32_t kLatentSplits = 32;
constexpr uint64_t kLatentLeastKeys = 64;
constexpr uint32_t kMostQueries = 16;
constexpr uint32_t kMostRank = 512;
constexpr uint32_t kBlocksPerUnit = 2;      // that fit into a multiprocessor at a time
constexpr uint32_t kQueryBytes = 40 << 10;  // of shared memory, for queries

Status launch_heads(Launcher& launcher, const View& view, const HeadLinear& op) {
    const Shape& shape = view.plan.weight(op.w).tensor.shape;
    const std::string module = view.weights[op.w].layout->name;
    args::HeadArgs args = {};
    args.step = view.step;
    args.w = view.weights[op.w].matrix();
    args.x = view.slot(op.x);
    args.y = view.slot(op.y);
    args.heads = uint32_t(shape.count);
    args.rows = uint32_t(shape.rows);
    args.cols = uint32_t(shape.cols);
    args.x_width = view.width(op.x);
    args.x_stride = op.x_stride;
    args.y_width = view.width(op.y);
    args.y_stride = op.y_stride;
    args.of_outputs = view.of_outputs(op.y);
    const uint32_t tokens = view.rows_of(op.y);
    // Those of few tokens read whole fours of the activations.
    const bool whole = (args.x_width % 4 == 0 && args.x_stride % 4 == 0) || args.cols % 4 != 0;
    if (tokens <= kFewRows && whole) {
        const uint32_t together = tokens == 1 ? 1 : kHeadTokens;
        Launch launch = striding(blocks_for(shape.count * shape.rows, kThreads / kHeadLanes));
        launch.y = (tokens + together - 1) / together;
        return launcher.launch(module, fmt::format("head_{}_{}", together, module), launch, args);
    }
    const double per_token = 2.0 * double(shape.elements());
    const double fit = flops_per_launch(launcher.device().report()) / per_token / kTile;
    const uint32_t step = uint32_t(std::clamp(fit, 1.0, 1000.0)) * kTile;
    for (uint32_t first = 0; first < tokens; first += step) {
        const uint32_t count = std::min(step, tokens - first);
        args.first_token = first;
        RL_TRY(launcher.launch(
            module, "head_tile_" + module,
            {blocks_for(args.rows, kTile), blocks_for(count, kTile), args.heads, kTileThreads}, args,
            per_token * count));
    }
    return {};
}

Status launch_store(Launcher& launcher, const View& view, const LatentStore& op) {
    const args::LatentStoreArgs args = {view.step, view.slot(op.latent), op.key ? view.slot(op.key) : nullptr,
                                        view.cache(op.cache), view.width(op.latent)};
    return launcher.launch(cache_module(view, op.cache), cache_kernel("latent_store", view, op.cache),
                           striding(view.rows), args);
}

class LatentAttentionKernel : public HipKernel {
public:
    LatentAttentionKernel(const LatentAttention& op, const Plan& plan, const Device& device)
        : op_(op),
          width_(plan.cache(op.cache).head_dim),
          rank_(plan.cache(op.cache).rank),
          units_(std::max(4u, device.report().multiprocessors)),
          per_launch_(flops_per_launch(device.report())) {}

    // Kernels number the bytes of the cache with words.
    bool fits(const Plan& plan) const {
        const bool too_long = plan.cache(op_.cache).capacity * width_ * 4 > UINT32_MAX;
        return rank_ <= kMostRank && !too_long && shared_bytes(least_queries()) <= kQueryBytes;
    }

    uint64_t scratch(const Plan& plan) const override {
        uint64_t most = 0;
        for (uint32_t rows = 1;; rows = std::min(rows * 2, plan.max_rows)) {
            for (const bool several : {false, plan.sizing.pages > 0})
                most = std::max(most, partial_bytes(rows, shape(plan, rows, several).splits));
            if (rows == plan.max_rows) return most;
        }
    }

    Status launch(Launcher& launcher, const View& view) const override {
        const bool several = view.kind == StepKind::several;
        const Shape s = shape(view.plan, view.rows, several);
        args::LatentArgs args = {};
        args.latents = view.cache(op_.cache);
        args::AttentionArgs& heads = args.heads;
        heads.step = view.step;
        heads.q = view.slot(op_.q);
        heads.y = view.slot(op_.y);
        heads.partials = view.scratch_at(0);
        heads.counters = view.caches.counters();
        heads.cache = args.latents;
        heads.cache.head_dim = rank_;
        heads.rows = view.rows;
        heads.heads = op_.heads;
        heads.splits = s.splits;
        heads.scale = op_.scale;
        const std::string kernel =
            fmt::format("latent_attention{}_{}_{}", whole_eights() ? "" : "_any", s.queries, kernel_rank());
        for (uint32_t first = 0; first < view.rows; first += s.rows) {
            const uint32_t rows = std::min(s.rows, view.rows - first);
            heads.first_row = first;
            heads.groups = blocks(rows, s.queries, several);
            heads.row_groups = several ? blocks(1, s.queries, several) : 0;
            RL_TRY(launcher.launch(cache_module(view, op_.cache), cache_kernel(kernel, view, op_.cache),
                                   {heads.splits, heads.groups, 1, kLatentThreads, shared_bytes(s.queries)},
                                   args, row_cost(view.plan) * rows));
        }
        return {};
    }

private:
    struct Shape {
        uint32_t queries;  // of a block
        uint32_t splits;
        uint32_t rows;  // of a launch
    };

    bool whole_eights() const { return width_ % 8 == 0 && rank_ % 8 == 0; }
    // Ranks that kernels are built for are upper bounds.
    uint32_t kernel_rank() const { return rank_ <= 128 ? 128 : kMostRank; }
    uint32_t least_queries() const { return whole_eights() ? 4 : 8; }
    // Queries, in their place results, then what merging splits needs.
    uint32_t shared_bytes(uint32_t queries) const {
        const uint32_t stride = (width_ + args::kLatentStep - 1) / args::kLatentStep * args::kLatentStep;
        return std::max(queries * std::max(stride, kernel_rank()) * 4, kLatentThreads * 16);
    }
    // Queries of one block, for which the cache is read once: as many as fit, but none in vain.
    uint32_t queries(uint32_t rows) const {
        if (!whole_eights()) return 8;
        const uint64_t there = uint64_t(rows) * op_.heads;
        uint32_t n = 4;
        while (n < kMostQueries && n < there && shared_bytes(n * 2) <= kQueryBytes) n *= 2;
        return n == kMostQueries && there % n != 0 && there < 64 ? n / 2 : n;
    }
    uint32_t blocks(uint32_t rows, uint32_t queries, bool several) const {
        if (several) return rows * blocks(1, queries, false);
        return uint32_t((uint64_t(rows) * op_.heads + queries - 1) / queries);
    }
    // With the cache full.
    double row_cost(const Plan& plan) const {
        return 2.0 * op_.heads * (width_ + rank_) * double(plan.cache(op_.cache).sequence_rows);
    }

    Shape shape(const Plan& plan, uint32_t rows, bool several) const {
        Shape s;
        s.queries = queries(several ? 1 : rows);
        // Rows are cut so that no launch takes long or is too high, and between blocks.
        const double highest = double(kMostHigh) / blocks(s.queries, s.queries, several),
                     fit = per_launch_ / row_cost(plan) / s.queries;
        s.rows = uint32_t(std::clamp(std::min(fit, highest), 1.0, 1000.0)) * s.queries;
        // Enough blocks to fill the device, but no more than the cache has keys for, and none where there are
        // too few counters for them. Those without keys end at once.
        const uint64_t all = blocks(std::min(rows, s.rows), s.queries, several);
        const uint64_t most =
            all > HipCaches::kCounters
                ? 1
                : std::min<uint64_t>(
                      kLatentSplits,
                      (plan.cache(op_.cache).sequence_rows + kLatentLeastKeys - 1) / kLatentLeastKeys);
        s.splits =
            uint32_t(std::clamp<uint64_t>(units_ * kBlocksPerUnit / all, 1, std::max<uint64_t>(most, 1)));
        return s;
    }

    uint64_t partial_bytes(uint32_t rows, uint32_t splits) const {
        if (splits == 1) return 0;
        const uint64_t whole_fours = (rank_ + 3) / 4 * 4;
        return aligned(uint64_t(rows) * op_.heads * splits * (whole_fours + 2) * 4);
    }

    LatentAttention op_;
    uint32_t width_, rank_;
    uint32_t units_;  // multiprocessors
    double per_launch_;
};

}  // namespace

std::unique_ptr<Kernel> make_latent_kernel(const Op& op, const Plan& plan, const Device& device) {
    if (const auto* o = std::get_if<HeadLinear>(&op)) {
        if (!has_layout(plan, o->w)) return nullptr;
        return simple([o = *o](Launcher& l, const View& v) { return launch_heads(l, v, o); });
    }
    if (const auto* o = std::get_if<LatentStore>(&op))
        return simple([o = *o](Launcher& l, const View& v) { return launch_store(l, v, o); });
    if (const auto* o = std::get_if<LatentAttention>(&op)) {
        auto kernel = std::make_unique<LatentAttentionKernel>(*o, plan, device);
        if (kernel->fits(plan)) return kernel;
    }
    return nullptr;
}

}  // namespace redline::hip
