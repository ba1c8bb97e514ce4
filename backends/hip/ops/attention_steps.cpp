// Rope, KvStore, RopeStore, and attention to all keys.
#include "attention_kernel.h"
#include "backends/gpu/attend.h"
#include "backends/shared/cache_rows.h"

namespace redline::hip {

namespace {

constexpr uint32_t kMostQueries = 8;
// As kernels/attention_few.h has them.
constexpr uint32_t kFewSplits = 64;
// As kernels/attention_many.h has them.
constexpr uint32_t kManyQueries = 64;
constexpr uint32_t kManySplits = 16;
constexpr uint64_t kManyLeastKeys = 256;
constexpr uint32_t kManyWaves = 4;

Status launch_rope(Launcher& launcher, const View& view, const Rope& op) {
    const RopeSpec& rope = view.plan.ropes[op.rope];
    const uint32_t pairs = uint32_t(rope.inverse_frequency.size());
    if (pairs == 0) return {};
    const args::RopeArgs args = {view.step, view.ropes[op.rope], view.slot(op.x), op.heads, op.head_dim,
                                 pairs,     rope.half_split,     op.first};
    return launcher.launch("vector", "rope",
                           striding(blocks_for(uint64_t(view.rows) * op.heads * pairs, kThreads)), args);
}

Status launch_kv_store(Launcher& launcher, const View& view, const KvStore& op) {
    const args::StoreArgs args = {view.step, view.slot(op.k), view.slot(op.v), view.cache(op.cache)};
    return launcher.launch(cache_module(view, op.cache), cache_kernel("kv_store", view, op.cache),
                           {view.rows * op.shape.kv_heads, 1, 1, kThreads}, args);
}

args::Turn turn_args(const View& view, const RopeStore& op) {
    const RopeSpec& rope = view.plan.ropes[op.rope];
    return {view.ropes[op.rope],
            view.vector(op.q_norm.gain),
            view.vector(op.k_norm.gain),
            uint32_t(rope.inverse_frequency.size()),
            rope.half_split,
            op.q_norm.eps,
            op.k_norm.eps};
}

Status launch_rope_store(Launcher& launcher, const View& view, const RopeStore& op) {
    const args::RopeStoreArgs args = {.step = view.step,
                                      .q = view.slot(op.q),
                                      .k = view.slot(op.k),
                                      .v = view.slot(op.v),
                                      .turn = turn_args(view, op),
                                      .cache = view.cache(op.cache),
                                      .heads = op.shape.heads};
    const uint64_t heads = uint64_t(view.rows) * (op.shape.heads + 2 * op.shape.kv_heads);
    return launcher.launch(cache_module(view, op.cache), cache_kernel("rope_store", view, op.cache),
                           striding(row_blocks(heads, 1, launcher.device())), args);
}

class AttentionKernel : public SplitKernel {
public:
    AttentionKernel(const Attention& op, const Plan& plan, const Device& device)
        : SplitKernel(op, op.shape.head_dim, device),
          wave_(device.report().wave()),
          gain_(device.report().target.starts_with("gfx10") ? 2.0 : 8.0),
          device_(class_of(device.report())),
          types_(plan.cache(op.cache).types) {}

    // At most so many queries of a block, and so many blocks of a multiprocessor.
    Choices choices(RowClass rows) const override {
        const Choice per_unit = choice("per_unit", usual_per_unit(), {1, 3, 4, 8});
        const bool few = rows == RowClass::one || rows == RowClass::few;
        if (!few || !whole_eights()) return {per_unit};
        Choices all = {per_unit,
                       choice("queries", usual("queries", rows), gpu::halves_of(most_queries(rows)))};
        if (rows == RowClass::one && most_queries(rows) > 1)
            all.push_back(
                choice("deep_queries", usual("deep_queries", rows), gpu::halves_of(most_queries(rows))));
        return all;
    }

    Precision precision(uint64_t rows) const override {
        return by_matrices(rows) ? gpu::attention_of_halfs(types_) : Precision();
    }

    uint64_t scratch(const Plan& plan) const override {
        return gpu::most_of_kinds(plan, [&](uint32_t rows, bool several) {
            uint64_t bytes = partial_bytes(rows, shape(plan, rows, several).splits);
            if (rows == 1) bytes = std::max(bytes, partial_bytes(1, shape(plan, 1, several, true).splits));
            if (!several || !by_matrices(rows)) return bytes;
            return std::max({bytes, partial_bytes(rows, tiled(plan, rows).splits),
                             partial_bytes(StepLayout::most_lone(plan, rows), lone(plan, rows).splits)});
        });
    }

    bool leaves_int8() const override { return op_.shape.head_dim % 32 == 0; }
    bool leaves_few() const override { return leaves_int8(); }
    // Kernels on matrix units leave none.
    uint32_t parts_left(const View& view) const override {
        if (view.rows == 1 || view.tiles) return 0;
        return shape(view.plan, view.rows, view.kind == StepKind::several).many ? 0 : op_.shape.heads;
    }
    bool mixes() const override { return by_matrices(kFewRows + 1); }

    Status launch(Launcher& launcher, const View& view) const override {
        return launch(launcher, view, nullptr);
    }
    // One row; given `store`, with its work.
    Status launch(Launcher& launcher, const View& view, const RopeStore* store) const {
        const HeadShape& s = op_.shape;
        const bool several = view.kind == StepKind::several;
        // In a mixed step the rows that are in no tile come first.
        const bool mixed = view.tiles && by_matrices(view.rows);
        const uint32_t all = mixed ? StepLayout::most_lone(view.plan, view.rows) : view.rows;
        const Shape shape =
            mixed ? lone(view.plan, view.rows) : this->shape(view.plan, all, several, is_deep(view));
        args::AttentionArgs args = attention_args(view, all, shape.splits);
        args.window = op_.window;
        args.chunks = op_.chunks;
        args.softcap = op_.softcap;
        args.hand = view.left;
        args.left = view.few_left;
        args.left.tokens = few_tokens(view.rows, launcher.device().report());
        if (store) {
            args.turn = turn_args(view, *store);
            args.k = view.slot(store->k);
            args.v = view.slot(store->v);
        }
        args.lone = mixed ? 1 : 0;
        args.row_groups = several ? blocks(1, shape.queries, several) : 0;
        RL_TRY(in_slices(all, shape.rows, [&](uint32_t first, uint32_t rows) {
            args.first_row = first;
            args.groups = blocks(rows, shape.queries, several);
            return launcher.launch(cache_module(view, op_.cache), cache_kernel(shape.kernel, view, op_.cache),
                                   {args.splits, args.groups, s.kv_heads, shape.threads}, args,
                                   row_cost(view.plan, shape.many) * rows);
        }));
        return mixed ? launch_tiles(launcher, view, args) : Status();
    }

private:
    // How attention of so many rows is launched.
    struct Shape {
        bool many;  // on matrix units
        std::string kernel;
        uint32_t threads;
        uint32_t queries;  // of a block
        uint32_t splits;
        uint32_t rows;  // of a launch
    };

    bool whole_eights() const { return op_.shape.head_dim % 8 == 0; }
    bool by_matrices(uint64_t rows) const {
        const bool exact = types_.keys == CacheType::f32 || types_.values == CacheType::f32;
        return rows > kFewRows && !exact && op_.shape.head_dim % 16 == 0 && op_.shape.head_dim <= 128;
    }
    // The head sizes that kernels are built for are upper bounds.
    uint32_t few_dims() const {
        const uint32_t dims = op_.shape.head_dim;
        if (dims <= 64) return 64;
        if (dims <= 128 && whole_eights()) return 128;
        return dims <= 256 ? 256 : 512;
    }
    uint32_t many_dims() const { return op_.shape.head_dim <= 64 ? 64 : op_.shape.head_dim <= 96 ? 96 : 128; }
    // Queries of one block: as many as share a kv head, and fit into its registers.
    uint32_t most_queries(RowClass rows) const {
        const uint32_t most = few_dims() > 256 ? 2 : few_dims() > 128 ? 4 : kMostQueries;
        return rows == RowClass::one ? std::min(most, power_of_two(group())) : most;
    }
    Default usual(std::string_view choice, RowClass rows) const {
        return gpu::default_of(gpu::kAttentionDefaults, choice, device_,
                               {.rows = rows, .most = most_queries(rows)});
    }
    bool is_deep(const View& view) const {
        constexpr uint64_t kDeepBytes = 16 << 20;
        const uint64_t keys =
            op_.window == 0 ? view.least_keys : std::min<uint64_t>(view.least_keys, op_.window);
        return keys * op_.shape.kv_heads * op_.shape.head_dim * 4 >= kDeepBytes;
    }
    uint32_t few_queries(uint32_t rows, bool deep) const {
        if (!whole_eights()) return few_dims() > 256 ? 2 : 4;
        const RowClass size = row_class_of(rows);
        const std::string_view name = deep && rows == 1 ? "deep_queries" : "queries";
        const uint32_t most = chosen(size, name, usual(name, size).value);
        return std::min(most, power_of_two(rows * group()));
    }
    uint32_t blocks(uint32_t rows, uint32_t queries, bool several) const {
        return gpu::query_groups(rows, group(), queries, several);
    }

    // What a row costs with the cache full, in what launches are measured by. Matrix units are faster.
    double row_cost(const Plan& plan, bool many) const {
        const double flops =
            4.0 * op_.shape.heads * op_.shape.head_dim * double(plan.cache(op_.cache).sequence_rows);
        return many ? flops / gain_ : flops;
    }

    Shape shape(const Plan& plan, uint32_t rows, bool several, bool deep = false) const {
        rows = plan.divided_rows(rows);
        const bool many = by_matrices(rows) && !several;
        const uint32_t together = several ? 1 : rows;  // that a block may have queries of
        const uint32_t queries = few_queries(together, deep);
        Shape s;
        s.many = many;
        s.kernel = many             ? fmt::format("attention_many_{}", many_dims())
                   : whole_eights() ? fmt::format("attention_few_{}_{}", queries, few_dims())
                                    : fmt::format("attention_any_{}_{}", queries, few_dims());
        s.threads = many ? kManyWaves * wave_ : kAttentionThreads;
        s.queries = many ? kManyQueries : queries;
        // Rows are cut so that no launch takes long, and between blocks.
        s.rows = slice_of(per_launch_, row_cost(plan, many), s.queries, kMostHighTiles);
        const uint64_t all =
            uint64_t(op_.shape.kv_heads) * blocks(std::min(rows, s.rows), s.queries, several);
        s.splits = splits_for(plan.cache(op_.cache).sequence_rows, many ? kManyLeastKeys : kLeastKeys, all,
                              rows, counted(all, many ? kManySplits : kFewSplits));
        return s;
    }

    // For the rows of a mixed step that are in no tile: hardly more than one of each sequence.
    Shape lone(const Plan& plan, uint32_t rows) const {
        return shape(plan, std::min(rows, plan.sizing.sequences), true);
    }
    // For its tiles, which are hardly more than those of as many rows of one sequence.
    Shape tiled(const Plan& plan, uint32_t rows) const {
        Shape s = shape(plan, rows, false);
        if (uint64_t(StepLayout::most_tiles(plan, rows)) * tile_groups() * op_.shape.kv_heads >
            HipCaches::kCounters)
            s.splits = 1;
        return s;
    }
    // Blocks for a tile of rows and a kv head.
    uint32_t tile_groups() const { return blocks(kTileRows, kManyQueries, false); }

    Status launch_tiles(Launcher& launcher, const View& view, args::AttentionArgs args) const {
        const Shape shape = tiled(view.plan, view.rows);
        const uint32_t all = StepLayout::most_tiles(view.plan, view.rows),
                       together = std::max(1u, shape.rows / kTileRows);
        args.lone = 0;
        args.rows = view.rows;
        args.splits = shape.splits;
        args.tiles = view.tiles;
        args.row_groups = tile_groups();
        return in_slices(all, together, [&](uint32_t first, uint32_t tiles) {
            args.first_row = first;
            args.groups = tiles * args.row_groups;
            return launcher.launch(cache_module(view, op_.cache), cache_kernel(shape.kernel, view, op_.cache),
                                   {args.splits, args.groups, op_.shape.kv_heads, shape.threads}, args,
                                   row_cost(view.plan, true) * tiles * kTileRows);
        });
    }

    uint32_t wave_;
    double gain_;  // of matrix units
    gpu::DeviceClass device_;
    CacheTypes types_;  // in f32 it is not for matrix units: it is wanted for its precision
};

// Attention does rope and store of one row by itself; of more, a launch before it does.
class AttendKernel : public gpu::AttendKernel<HipKernel, AttentionKernel, View> {
public:
    AttendKernel(const Attend& op, const Plan& plan, const Device& device)
        : gpu::AttendKernel<HipKernel, AttentionKernel, View>(op, plan, device,
                                                              attention_default("fused", device.report())) {}

    Status launch(Launcher& launcher, const View& view) const override {
        if (view.rows == 1) return attention_.launch(launcher, view, &op_.store);
        RL_TRY(launch_rope_store(launcher, view, op_.store));
        return attention_.launch(launcher, view);
    }
};

// Kernels number the bytes of a head's keys with words.
bool has_kernel(const Attention& op, const Plan& plan) {
    const bool too_long = plan.cache(op.cache).capacity * op.shape.head_dim * 4 > UINT32_MAX;
    return op.shape.head_dim <= args::kMostHeadDim && !too_long;
}

}  // namespace

std::string cache_module(const View& view, Cache cache) {
    return cache_kernel("cache", view, cache);
}
std::string cache_kernel(std::string_view stem, const View& view, Cache cache) {
    const CacheTypes types = view.plan.cache(cache).types;
    return fmt::format("{}_{}", stem, is_plain_cache(types) ? cache_type_name(types.keys) : "mixed");
}

std::unique_ptr<Kernel> make_attention_kernel(const Op& op, const Plan& plan, const Device& device) {
    if (const auto* o = std::get_if<RopeStore>(&op); o && o->shape.head_dim > args::kMostHeadDim)
        return nullptr;
    if (auto kernel = gpu::first_of<Gpu>(op, launch_rope, launch_kv_store, launch_rope_store)) return kernel;
    if (const auto* o = attention_to(Keys::all, op))
        return has_kernel(*o, plan) ? std::make_unique<AttentionKernel>(*o, plan, device) : nullptr;
    if (const auto* o = std::get_if<Attend>(&op);
        o && o->v_eps == 0.0f && is_plain_cache(plan.cache(o->store.cache).types))
        return has_kernel(o->attention, plan) ? std::make_unique<AttendKernel>(*o, plan, device) : nullptr;
    return nullptr;
}

}  // namespace redline::hip
