// Products by head, LatentStore, and attention to latents and entries.
#include "attention_kernel.h"
#include "backends/hip/kernels/block_args.h"

#include <algorithm>

namespace redline::hip {

namespace {

constexpr uint32_t kTile = 64;       // of head_tile, both ways
constexpr uint32_t kHeadTokens = 4;  // of head_4
constexpr uint32_t kHeadLanes = 4;   // that share a row, on all devices
// The same numbers as in kernels/latent.h and latent_merge.h.
constexpr uint32_t kLatentThreads = kAttentionThreads;
constexpr uint32_t kMostLatentQueries = 16;
constexpr uint32_t kMostRank = 512, kMostWidth = 576;
constexpr uint32_t kQueryBytes = 40 << 10;  // of shared memory, for queries

Status launch_heads(Launcher& launcher, const View& view, const Product& op) {
    const Shape& shape = view.plan.weight(op.w()).tensor.shape;
    const std::string module = view.weights[op.w()].layout->name;
    args::HeadArgs args = {};
    args.step = view.step;
    args.w = view.weights[op.w()].matrix();
    args.x = view.slot(op.x);
    args.y = view.slot(op.y());
    args.heads = uint32_t(shape.count);
    args.rows = uint32_t(shape.rows);
    args.cols = uint32_t(shape.cols);
    args.x_width = view.width(op.x);
    args.x_stride = op.strides.x;
    args.y_width = view.width(op.y());
    args.y_stride = op.strides.y;
    args.of_outputs = view.of_outputs(op.y());
    const uint32_t tokens = view.rows_of(op.y());
    // Those of few tokens read whole fours of the activations.
    const bool whole = (args.x_width % 4 == 0 && args.x_stride % 4 == 0) || args.cols % 4 != 0;
    if (tokens <= kFewRows && whole) {
        const uint32_t together = tokens == 1 ? 1 : kHeadTokens;
        Launch launch = striding(blocks_for(shape.count * shape.rows, kThreads / kHeadLanes));
        launch.y = (tokens + together - 1) / together;
        return launcher.launch(module, fmt::format("head_{}_{}", together, module), launch, args);
    }
    const double per_token = 2.0 * double(shape.elements());
    return in_slices(
        launcher, tokens, per_token, kTile,
        [&](uint32_t first, uint32_t count) {
            args.first_token = first;
            return launcher.launch(
                module, "head_tile_" + module,
                {blocks_for(args.rows, kTile), blocks_for(count, kTile), args.heads, kTileThreads}, args,
                per_token * count);
        },
        kMostHighTiles);
}

Status launch_store(Launcher& launcher, const View& view, const LatentStore& op) {
    const args::LatentStoreArgs args = {view.step,
                                        view.slot(op.latent),
                                        op.key ? view.slot(op.key) : nullptr,
                                        view.cache(op.cache),
                                        view.width(op.latent),
                                        view.plan.cache(op.cache).ratio};
    return launcher.launch(cache_module(view, op.cache), cache_kernel("latent_store", view, op.cache),
                           striding(view.rows), args);
}

// How queries of heads of one width share blocks.
struct LatentFit {
    uint32_t heads, width, rank;

    // Kernels number the bytes of a cache with words.
    bool fits(const CacheInfo& cache) const {
        const bool too_long = cache.capacity * width * 4 > UINT32_MAX;
        return rank <= kMostRank && !too_long && shared_bytes(least_queries()) <= kQueryBytes;
    }
    // For matrix units, of which small ranks leave too many without work.
    bool whole_tiles() const {
        return width % 16 == 0 && rank % 16 == 0 && width <= kMostWidth && kernel_rank() == kMostRank;
    }
    bool whole_eights() const { return width % 8 == 0 && rank % 8 == 0; }
    // Ranks that kernels are built for are upper bounds.
    uint32_t kernel_rank() const { return rank <= 128 ? 128 : kMostRank; }
    uint32_t least_queries() const { return whole_eights() ? 4 : 8; }
    // Queries, in their place results, then what merging splits needs.
    uint32_t shared_bytes(uint32_t queries) const {
        const uint32_t stride = (width + args::kLatentStep - 1) / args::kLatentStep * args::kLatentStep;
        return std::max(queries * std::max(stride, kernel_rank()) * 4, kLatentThreads * 16);
    }
    // Queries of one block, for which the cache is read once: as many as fit, but none in vain.
    uint32_t queries(uint32_t rows) const {
        if (!whole_eights()) return 8;
        const uint64_t there = uint64_t(rows) * heads;
        uint32_t n = 4;
        while (n < kMostLatentQueries && n < there && shared_bytes(n * 2) <= kQueryBytes) n *= 2;
        return n == kMostLatentQueries && there % n != 0 && there < 64 ? n / 2 : n;
    }
    // Blocks per multiprocessor, and queries of a block, of which 0 is what queries() says of `rows`; those
    // of one row are known.
    Choices choices(RowClass rows) const {
        const Choice per_unit = choice("per_unit", usual_per_unit(), {1, 4, 8});
        if (!whole_eights()) return {per_unit};
        std::vector<uint32_t> others;
        for (uint32_t n = least_queries(); n <= kMostLatentQueries && shared_bytes(n) <= kQueryBytes; n *= 2)
            if (rows != RowClass::one || n != queries(1)) others.push_back(n);
        return {per_unit,
                gpu::by_shape("queries", gpu::default_of(gpu::kLatentDefaults, "queries", {.hip = true}),
                              std::move(others))};
    }
    // Of kernels/latent.h.
    static uint32_t tile_keys(uint32_t queries) { return 512 / queries; }
    std::string kernel(std::string_view stem, uint32_t queries) const {
        return fmt::format("{}{}_{}_{}", stem, whole_eights() ? "" : "_any", queries, kernel_rank());
    }
};

class LatentAttentionKernel : public SplitKernel {
public:
    LatentAttentionKernel(const Attention& op, const Plan& plan, const Device& device)
        : SplitKernel(op, plan.cache(op.cache).rank, device),
          fit_{op.shape.heads, plan.cache(op.cache).head_dim, dims_},
          type_(plan.cache(op.cache).types.keys),
          by_matrix_(type_ != CacheType::f32 && fit_.whole_tiles() &&
                     !device.report().target.starts_with("gfx10")),
          device_(class_of(device.report())) {}

    bool fits(const Plan& plan) const { return fit_.fits(plan.cache(op_.cache)); }

    Choices choices(RowClass rows) const override {
        if (!by_matrix_) return fit_.choices(rows);
        const Default usual = matrix_queries(rows);
        Choice per_unit = choice("per_unit", usual_per_unit(), {1, 4});
        per_unit.any = true;
        return {per_unit, choice("queries", usual, {16, matrix_queries(RowClass::many).value})};
    }

    Precision precision(uint64_t) const override {
        return by_matrix_ ? gpu::attention_of_halfs(type_) : Precision();
    }

    uint64_t scratch(const Plan& plan) const override {
        return gpu::most_of_kinds(plan, [&](uint32_t rows, bool several) {
            return partial_bytes(rows, shape(plan, rows, several).splits);
        });
    }

    Status launch(Launcher& launcher, const View& view) const override {
        const bool several = view.kind == StepKind::several;
        const Shape s = shape(view.plan, view.rows, several);
        args::LatentArgs args = {};
        args.latents = view.cache(op_.cache);
        args::AttentionArgs& heads = args.heads = attention_args(view, view.rows, s.splits);
        heads.cache.head_dim = fit_.rank;
        heads.row_groups = several ? blocks(1, s.queries, several) : 0;
        RL_TRY(in_slices(view.rows, s.rows, [&](uint32_t first, uint32_t rows) {
            heads.first_row = first;
            heads.groups = blocks(rows, s.queries, several);
            return launcher.launch(cache_module(view, op_.cache), cache_kernel(s.kernel, view, op_.cache),
                                   {heads.splits, heads.groups, 1, kLatentThreads, s.shared_bytes}, args,
                                   row_cost(view.plan) * rows);
        }));
        return s.splits > 1 ? merge(launcher, view, args, s) : Status{};
    }

private:
    struct Shape {
        std::string kernel;
        uint32_t shared_bytes;
        uint32_t unit;     // keys of which splits are multiples
        uint32_t queries;  // of a block
        uint32_t splits;
        uint32_t rows;  // of a launch
    };

    // What the splits of all rows left comes together.
    Status merge(Launcher& launcher, const View& view, const args::LatentArgs& args, const Shape& s) const {
        args::LatentMergeArgs merge = {args.heads, s.queries, s.unit};
        merge.heads.first_row = 0;
        const uint64_t chunks = blocks_for((fit_.rank + 3) / 4, args::kMergeFours);
        return launcher.launch(
            "vector", "latent_merge",
            {uint32_t(uint64_t(view.rows) * op_.shape.heads * chunks), 1, 1, kLatentThreads}, merge);
    }

    // Of a block: 16, or 32 where there are more.
    uint32_t matrix_queries(uint32_t rows, uint32_t wanted) const {
        if (wanted == 0) wanted = matrix_queries(row_class_of(rows)).value;
        return wanted <= 16 || uint64_t(rows) * op_.shape.heads <= 16 ? 16
                                                                      : matrix_queries(RowClass::many).value;
    }
    Default matrix_queries(RowClass rows) const {
        return gpu::default_of(gpu::kLatentDefaults, "queries", device_, {.rows = rows, .matrices = true});
    }

    uint32_t blocks(uint32_t rows, uint32_t queries, bool several) const {
        return gpu::query_groups(rows, op_.shape.heads, queries, several);
    }
    // With the cache full.
    double row_cost(const Plan& plan) const {
        return 2.0 * op_.shape.heads * (fit_.width + fit_.rank) * double(plan.cache(op_.cache).sequence_rows);
    }

    Shape shape(const Plan& plan, uint32_t rows, bool several) const {
        Shape s;
        rows = plan.divided_rows(rows);
        const RowClass size = row_class_of(rows);
        const uint32_t wanted = chosen(size, "queries", 0), together = several ? 1 : rows;
        if (by_matrix_) {
            s.queries = matrix_queries(together, wanted);
            s.kernel = fmt::format("latent_many_{}", s.queries);
            s.shared_bytes = args::kLatentTileBytes;
            s.unit = args::kLatentTileKeys;
        } else {
            s.queries = wanted > 0 ? wanted : fit_.queries(together);
            s.kernel = fit_.kernel("latent_attention", s.queries);
            s.shared_bytes = fit_.shared_bytes(s.queries);
            s.unit = fit_.tile_keys(s.queries);
        }
        // Rows are cut so that no launch takes long or is too high, and between blocks.
        const double highest = double(kMostHigh) / blocks(s.queries, s.queries, several);
        s.rows = slice_of(per_launch_, row_cost(plan), s.queries, std::min(highest, kMostHighTiles));
        const uint64_t all = blocks(std::min(rows, s.rows), s.queries, several);
        s.splits =
            splits_for(plan.cache(op_.cache).sequence_rows, kLeastKeys, all, rows, args::kLatentMostSplits);
        return s;
    }

    LatentFit fit_;
    CacheType type_;
    bool by_matrix_;  // on matrix units
    gpu::DeviceClass device_;
};

// Rows see different entries.
class EntryAttentionKernel : public RowKernel<EntryAttentionKernel> {
public:
    static constexpr uint32_t kMostSplits = 32;  // as kernels/entries.h has it

    EntryAttentionKernel(const Attention& op, const Plan& plan, const Device& device)
        : RowKernel(op, plan.cache(op.cache).head_dim, device), fit_{op.shape.heads, dims_, dims_} {}

    // A row of the entries is told by a bit.
    bool fits(const Plan& plan) const {
        const auto good = [&](const CacheInfo& cache) {
            return fit_.fits(cache) && cache.capacity < uint64_t(1) << 31;
        };
        return good(plan.cache(op_.cache)) && (!op_.keys.entries || good(plan.cache(op_.keys.entries)));
    }
    Choices choices(RowClass rows) const override { return fit_.choices(rows); }

    Status launch(Launcher& launcher, const View& view) const override {
        args::EntryArgs args = {};
        args.latent.latents = view.cache(op_.cache);
        args.latent.heads = attention_args(view, view.rows, splits(view.plan, view.rows));
        args.window = uint32_t(view.plan.cache(op_.cache).window);
        if (op_.keys.entries) args.entries = view.cache(op_.keys.entries);
        if (op_.keys.entries) args.ratio = view.plan.cache(op_.keys.entries).ratio;
        if (op_.keys.chosen) args.chosen = view.slot(op_.keys.chosen);
        if (op_.keys.chosen) args.most = view.width(op_.keys.chosen);
        const uint32_t n = queries(view.rows);
        return launch_rows(launcher, view, fit_.kernel("entry_attention", n), args, args.latent.heads,
                           fit_.shared_bytes(n));
    }

    // Of a block.
    uint32_t queries(uint32_t rows) const {
        const uint32_t wanted = chosen(row_class_of(rows), "queries", 0);
        return wanted > 0 ? wanted : fit_.queries(1);
    }

private:
    LatentFit fit_;
};

}  // namespace

std::unique_ptr<Kernel> make_latent_kernel(const Op& op, const Plan& plan, const Device& device) {
    if (const Product* o = product_by(By::head, op)) {
        if (!has_layout(plan, o->w())) return nullptr;
        return simple([o = *o](Launcher& l, const View& v) { return launch_heads(l, v, o); });
    }
    if (auto kernel = gpu::first_of<Gpu>(op, launch_store)) return kernel;
    if (const auto* o = attention_to(Keys::latents, op)) {
        auto kernel = std::make_unique<LatentAttentionKernel>(*o, plan, device);
        if (kernel->fits(plan)) return kernel;
    }
    if (const auto* o = attention_to(Keys::entries, op)) {
        auto kernel = std::make_unique<EntryAttentionKernel>(*o, plan, device);
        if (kernel->fits(plan)) return kernel;
    }
    return nullptr;
}

}  // namespace redline::hip
