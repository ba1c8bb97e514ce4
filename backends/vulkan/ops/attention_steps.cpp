// Rope, KvStore, RopeStore, and attention to all keys.
#include "attention_kernel.h"
#include "backends/gpu/attend.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace redline::vulkan {

namespace {

constexpr uint32_t kMostHeadDim = 512;
constexpr uint32_t kMostQueries = 16;
constexpr uint32_t kTurnLanes = 32;  // that share a head of rope_store, at least
// Of attention_coop. Larger heads are cut into parts, each of a subgroup, or its sums would not fit into
// registers; so many fewer queries share a work-group.
constexpr uint32_t kKeysPerTile = 32;
constexpr uint32_t kMatrixQueries = 64;
constexpr uint32_t kWideQueries = 128;
constexpr uint32_t kMostMatrixThreads = 256;  // with 512 RDNA 3's integrated chips have too few registers
constexpr uint32_t kMostPartDim = 128;
static_assert(RL_TILE_ROWS == kTileRows);

Status record_rope(Recorder& recorder, const View& view, const Rope& op) {
    const RopeSpec& rope = view.plan.ropes[op.rope];
    const uint32_t pairs = uint32_t(rope.inverse_frequency.size());
    if (pairs == 0) return {};
    const args::RopeArgs push = {op.heads, op.head_dim, pairs, rope.half_split, view.rope_offsets[op.rope],
                                 op.first};
    return recorder.dispatch({"rope", 3, 1, {kThreads}}, {view.slot(op.x), view.step, view.step}, push,
                             element_groups(uint64_t(view.rows) * op.heads * pairs));
}

Status record_kv_store(Recorder& recorder, const View& view, const KvStore& op) {
    args::StoreArgs push = {op.shape.kv_heads, op.shape.head_dim, 0, 0, 0};
    set_rows(push, view.plan.cache(op.cache));
    const auto& cache = view.caches[op.cache];
    return record_cached(recorder, view, op.cache, "kv_store", {kThreads, uint32_t(view.kind)},
                         {view.slot(op.k), view.slot(op.v), view.step, cache.keys, cache.values}, push,
                         striding(uint64_t(view.rows) * op.shape.kv_heads));
}

// RL_TURN_*, as the kernels that turn heads take them for a constant.
uint32_t turning(const RopeStore& op, const Plan& plan) {
    return RL_TURN_HEADS | (plan.ropes[op.rope].half_split ? RL_TURN_HALVES : 0) |
           (op.q_norm ? RL_TURN_Q_NORM : 0) | (op.k_norm ? RL_TURN_K_NORM : 0);
}

template <typename Args>
void set_turning(Args& push, const RopeStore& op, const View& view) {
    push.pairs = uint32_t(view.plan.ropes[op.rope].inverse_frequency.size());
    push.table = view.rope_offsets[op.rope];
    push.q_eps = op.q_norm.eps;
    push.k_eps = op.k_norm.eps;
}

Status record_rope_store(Recorder& recorder, const View& view, const RopeStore& op) {
    const HeadShape& s = op.shape;
    args::RopeStoreArgs push = {};
    push.heads = s.heads;
    push.kv_heads = s.kv_heads;
    set_rows(push, view.plan.cache(op.cache));
    set_turning(push, op, view);
    const auto& cache = view.caches[op.cache];
    const uint32_t subgroup = recorder.device().subgroup(), lanes = std::max(kTurnLanes, subgroup);
    const uint32_t threads = std::max(kThreads, lanes);
    return record_cached(
        recorder, view, op.cache, "rope_store",
        {threads, s.head_dim, turning(op, view.plan), lanes, subgroup, uint32_t(view.kind)},
        {view.slot(op.q), view.slot(op.k), view.slot(op.v), view.step, cache.keys, cache.values, view.step,
         view.vector(op.q_norm.gain, view.step), view.vector(op.k_norm.gain, view.step)},
        push,
        striding((uint64_t(view.rows) * (s.heads + s.kv_heads) + threads / lanes - 1) / (threads / lanes)));
}

class AttentionKernel : public SplitKernel {
public:
    AttentionKernel(const Attention& op, const Plan& plan, const Device& device)
        : SplitKernel(op, op.shape.head_dim, device),
          matrices_(matrices_fit(op.shape, plan.cache(op.cache).types, device, kMatrixQueries)),
          wide_(matrices_fit(op.shape, plan.cache(op.cache).types, device, kWideQueries)),
          types_(plan.cache(op.cache).types),
          few_threads_(vulkan::few_threads(device)),
          most_threads_(std::min(own_threads(device), 512u)),
          subgroup_(device.subgroup()),
          fragments_(device.fragments ? &*device.fragments : nullptr),
          shared_(device.report().limits.maxComputeSharedMemorySize) {}

    // Whether it is by attention_few: whole halves of units, 16 elements, lie in one head.
    static bool by_few(const HeadShape& shape, uint64_t rows) {
        return rows <= kFewRows && shape.head_dim % 16 == 0 && shape.head_dim <= kMostFewHeadDim;
    }

    Choices choices(RowClass rows) const override {
        const uint64_t least = rows_in(rows);
        Choices all = {groups_choice(wanted_)};
        if (by_matrices(least)) {
            if (wide_)
                all.push_back(gpu::by_shape(
                    "queries", gpu::default_of(gpu::kAttentionDefaults, "queries", {}, {.matrices = true}),
                    {matrices_->queries, wide_->queries}));
            return all;
        }
        const bool few = by_few(least);
        all.push_back(choice("queries", usual_queries(rows, few),
                             gpu::halves_of(few ? kMostFewQueries : kMostQueries)));
        if (!few) return all;
        std::vector<uint32_t> threads;
        for (uint32_t n = std::max(128u, subgroup_); n <= most_threads_; n *= 2) threads.push_back(n);
        all.push_back(choice("threads", few_threads_, std::move(threads)));
        return all;
    }

    Precision precision(uint64_t rows) const override {
        return by_matrices(rows) ? gpu::attention_of_halfs(types_) : Precision();
    }

    bool leaves_int8() const override { return by_few(1); }
    bool leaves_few() const override { return by_few(1) && fragments_; }
    uint32_t parts_left(const View& view) const override {
        const bool few =
            view.rows > 1 && !view.mixed && by_few(view.kind == StepKind::several ? 1 : view.rows);
        return few && fragments_ ? op_.shape.heads : 0;
    }
    bool mixes() const override { return by_matrices(kFewRows + 1); }

    uint64_t scratch(const Plan& plan) const override {
        return gpu::most_of_kinds(plan, [&](uint32_t rows, bool several) {
            const uint64_t bytes = partial_bytes(rows, splits(plan, rows, several));
            if (!several || !by_matrices(rows)) return bytes;
            const auto any = [&](uint32_t there, uint32_t splits) {
                return gpu::partial_bytes(there, op_.shape.heads, splits, op_.shape.head_dim);
            };
            return std::max({bytes, any(rows, mixed_splits(plan, rows)),
                             any(StepLayout::most_lone(plan, rows), lone_splits(plan, rows))});
        });
    }

    Status record(Recorder& recorder, const View& view) const override {
        return record(recorder, view, nullptr);
    }
    // One row; given `attend`, with the work of what it stores.
    Status record(Recorder& recorder, const View& view, const Attend* attend) const {
        const bool several = view.kind == StepKind::several;
        const uint32_t rows = rows_first(view), splits_here = tiles_follow(view)
                                                                  ? lone_splits(view.plan, view.rows)
                                                                  : splits(view.plan, rows, several);
        const HeadShape& s = op_.shape;
        const Binding partials = claim_partials(recorder, view, partial_bytes(rows, splits_here));
        // Rows are cut so that no dispatch alone fills a submission, with the cache full; at whole
        // work-groups.
        const uint32_t n = queries(view.rows, several), together = several ? 1 : n / std::gcd(n, group());
        const double per_row = 4.0 * s.heads * s.head_dim * double(view.plan.cache(op_.cache).sequence_rows);
        RL_TRY(in_slices(recorder, rows, per_row, together, [&](uint32_t first, uint32_t count) {
            return record_rows(recorder, view, first, count, splits_here, partials, per_row, attend);
        }));
        if (tiles_follow(view)) return record_tiles(recorder, view);
        // attention.comp merges its splits by itself.
        if (splits_here == 1 || several || !by_matrices(view.rows)) return {};
        return combine(recorder, view, splits_here, partials);
    }

private:
    Status combine(Recorder& recorder, const View& view, uint32_t splits, Binding partials) const {
        recorder.barrier();
        return recorder.dispatch({"combine", 4, 1, {kThreads, op_.shape.head_dim, splits, step_kind(view)}},
                                 {partials, view.slot(op_.y), view.step, view.vector(op_.sinks, view.step)},
                                 attention_args(view, 0, splits, nullptr),
                                 {uint64_t(view.rows) * op_.shape.heads});
    }

    // In a mixed step the rows that are in no tile come first, hardly more than one of each sequence.
    bool tiles_follow(const View& view) const { return view.mixed && by_matrices(view.rows); }
    uint32_t step_kind(const View& view) const {
        static_assert(RL_STEP_MIXED == uint32_t(StepKind::mixed));
        return tiles_follow(view) ? RL_STEP_MIXED : uint32_t(view.kind);
    }
    uint32_t rows_first(const View& view) const {
        return tiles_follow(view) ? StepLayout::most_lone(view.plan, view.rows) : view.rows;
    }
    uint32_t lone_splits(const Plan& plan, uint32_t rows) const {
        return splits(plan, std::min(rows, plan.sizing.sequences), true);
    }
    // Tiles are hardly more than those of as many rows of one sequence.
    uint32_t mixed_splits(const Plan& plan, uint32_t rows) const {
        const uint64_t tiles = (rows + kTileRows - 1) / kTileRows * tile_groups();
        return attention_splits(plan.cache(op_.cache).sequence_rows, tiles * op_.shape.kv_heads,
                                wanted_.value);
    }
    // Work-groups of a tile of rows and a kv head.
    uint32_t tile_groups() const { return gpu::query_groups(kTileRows, group(), matrices_->queries, false); }
    Status record_tiles(Recorder& recorder, const View& view) const {
        recorder.barrier();  // they take the same scratch
        const uint32_t splits = mixed_splits(view.plan, view.rows);
        const Binding partials = claim_partials(recorder, view, partial_bytes(view.rows, splits));
        const double per_tile = 4.0 * op_.shape.heads * op_.shape.head_dim * kTileRows *
                                double(view.plan.cache(op_.cache).sequence_rows);
        const uint32_t all = StepLayout::most_tiles(view.plan, view.rows);
        RL_TRY(in_slices(recorder, all, per_tile, 1, [&](uint32_t first, uint32_t tiles) {
            return record_matrices(recorder, view, *matrices_, attention_args(view, first, splits, nullptr),
                                   partials, {splits, tiles * tile_groups(), op_.shape.kv_heads},
                                   per_tile * tiles);
        }));
        return splits == 1 ? Status() : combine(recorder, view, splits, partials);
    }

    // How attention_coop is cut: `parts` subgroups share as many queries as a matrix has rows.
    struct MatrixCut {
        MatrixShape shape;
        uint32_t queries, threads, subgroup, parts;
        uint64_t shared(uint32_t head_dim) const {
            const uint64_t dims = (head_dim / parts + 15) / 16 * 16 * parts;
            const uint64_t tiles = (parts == 1 ? 2 : 1) * kKeysPerTile * (dims / 8 + 1) * 16;
            const uint64_t scores = queries * parts * (kKeysPerTile / 4 + 1) * 16;
            return tiles + scores + threads * 4 + (parts == 1 ? 0 : 16);
        }
    };
    static uint32_t matrix_parts(uint32_t head_dim) {
        return head_dim <= kMostPartDim ? 1 : head_dim <= 2 * kMostPartDim ? 2 : 4;
    }
    // Empty when the device, the head or the cache is not for matrix units. A cache in f32 is wanted for its
    // precision.
    static std::optional<MatrixCut> matrices_fit(const HeadShape& s, CacheTypes types, const Device& device,
                                                 uint32_t queries) {
        const MatrixShape* shape = device.use_matrix() ? matrix_shape(device.report()) : nullptr;
        if (!shape || types.keys == CacheType::f32 || types.values == CacheType::f32 ||
            s.head_dim % 16 != 0 || s.head_dim > 4 * kMostPartDim)
            return {};
        if (!Pipelines::exists("attention_coop.f16") || device.subgroup() % shape->m != 0 ||
            device.subgroup() / shape->m > 4 || shape->n > kKeysPerTile / 2 ||
            shape->n % (device.subgroup() / shape->m) != 0)
            return {};
        const uint32_t parts = matrix_parts(s.head_dim), threads = queries / shape->m * device.subgroup();
        const MatrixCut cut{*shape, queries / parts, threads, device.subgroup(), parts};
        const VkPhysicalDeviceLimits& limits = device.report().limits;
        if (cut.threads > kMostMatrixThreads || cut.threads > limits.maxComputeWorkGroupInvocations ||
            cut.threads > limits.maxComputeWorkGroupSize[0] ||
            cut.shared(s.head_dim) > limits.maxComputeSharedMemorySize)
            return {};
        return cut;
    }
    bool by_matrices(uint64_t rows) const { return matrices_ && rows > kFewRows; }
    // Twice as many queries where work-groups are many anyway.
    const MatrixCut& cut(uint64_t rows) const {
        const uint32_t wanted = chosen(row_class_of(rows), "queries", 0);
        if (!wide_ || wanted == matrices_->queries) return *matrices_;
        const uint64_t tiles = (rows * group() + wide_->queries - 1) / wide_->queries;
        return wanted == wide_->queries || tiles * op_.shape.kv_heads >= wanted_.value ? *wide_ : *matrices_;
    }
    bool by_few(uint64_t rows) const { return by_few(op_.shape, rows); }
    uint32_t few_threads(uint64_t rows) const {
        return chosen(row_class_of(rows), "threads", few_threads_.value);
    }

    // At most so many queries of a work-group.
    static Default usual_queries(RowClass rows, bool few) {
        const uint32_t most = few ? kMostFewQueries : kMostQueries;
        return gpu::default_of(gpu::kAttentionDefaults, "queries", {},
                               {.rows = rows, .most = most, .few = few});
    }
    // Queries of one work-group: as many as share a kv head, as far as shared memory goes.
    uint32_t queries(uint32_t rows, bool several) const {
        if (several) return queries(1, false);
        if (by_matrices(rows)) return cut(rows).queries;
        const uint32_t most =
            chosen(row_class_of(rows), "queries", usual_queries(row_class_of(rows), by_few(rows)).value);
        const uint64_t room = std::min<uint64_t>(shared_, 32768);
        uint32_t n = 1;
        while (n < most && n < rows * group()) n *= 2;
        while (n > 1 && by_few(rows) && few_shared(op_.shape.head_dim, n, few_threads(rows)) > room) n /= 2;
        while (n > 1 && uint64_t(n) * (op_.shape.head_dim + kThreads + 4) * 4 > room) n /= 2;
        return n;
    }

    uint32_t splits(const Plan& plan, uint32_t rows, bool several) const {
        rows = plan.divided_rows(rows);
        const uint64_t units =
            uint64_t(op_.shape.kv_heads) * gpu::query_groups(rows, group(), queries(rows, several), several);
        return attention_splits(plan.cache(op_.cache).sequence_rows, units,
                                chosen(row_class_of(rows), "groups", wanted_.value));
    }

    args::AttentionArgs attention_args(const View& view, uint32_t first, uint32_t splits,
                                       const Attend* attend) const {
        auto push = SplitKernel::attention_args<args::AttentionArgs>(view, op_.shape.kv_heads,
                                                                     rows_first(view), splits);
        push.window = op_.window;
        push.chunks = op_.chunks ? 1 : 0;
        push.first_row = first;
        push.has_sinks = op_.sinks ? 1 : 0;
        push.softcap = op_.softcap;
        push.hand_units = view.left_units();
        push.hand_normed = view.left_norm ? 1 : 0;
        if (attend) set_turning(push, attend->store, view);
        if (attend) push.v_eps = attend->v_eps;
        return push;
    }

    Status record_rows(Recorder& recorder, const View& view, uint32_t first, uint32_t rows, uint32_t splits,
                       Binding partials, double per_row, const Attend* attend) const {
        const bool several = view.kind == StepKind::several;
        const uint32_t n = queries(view.rows, several), kind = step_kind(view);
        const auto& cache = view.caches[op_.cache];
        const Groups groups = {splits, gpu::query_groups(rows, group(), n, several), op_.shape.kv_heads};
        const Binding q = view.slot(op_.q), y = view.slot(op_.y), sinks = view.vector(op_.sinks, view.step);
        const args::AttentionArgs push = attention_args(view, first, splits, attend);
        const RopeStore* const store = attend ? &attend->store : nullptr;
        if (by_few(several ? 1 : view.rows)) {
            const uint32_t leaves = view.left.bytes != 0       ? 1
                                    : view.few_left.bytes != 0 ? 2
                                                               : 0,
                           tokens = leaves == 2 ? fragment_tokens(*fragments_, view.rows) : 0,
                           owners = leaves == 2 ? fragments_->owners : 0;
            const uint32_t turn = store ? turning(*store, view.plan) : 0;
            return record_cached(
                recorder, view, op_.cache, "attention_few",
                {few_threads(several ? 1 : view.rows), op_.shape.head_dim, n, leaves, turn, subgroup_, kind,
                 group(), tokens, owners},
                {q, y, view.step, cache.keys, cache.values, sinks, partials, view.caches.counters(),
                 leaves == 2   ? view.few_left
                 : leaves == 1 ? view.left
                               : y,
                 view.vector(view.left_norm.gain, view.step), store ? view.slot(store->k) : q,
                 store ? view.slot(store->v) : q,
                 view.vector(store ? store->q_norm.gain : Weight{}, view.step),
                 view.vector(store ? store->k_norm.gain : Weight{}, view.step)},
                push, groups, per_row * rows);
        }
        if (by_matrices(view.rows) && !several)
            return record_matrices(recorder, view, cut(view.rows), push, partials, groups, per_row * rows);
        return record_cached(
            recorder, view, op_.cache, "attention",
            {kThreads, op_.shape.head_dim, n, n <= 4 ? 16u : 4u, kind, group()},
            {q, y, view.step, cache.keys, cache.values, sinks, partials, view.caches.counters()}, push,
            groups, per_row * rows);
    }

    Status record_matrices(Recorder& recorder, const View& view, const MatrixCut& cut,
                           const args::AttentionArgs& push, Binding partials, const Groups& groups,
                           double flops) const {
        const auto& cache = view.caches[op_.cache];
        const MatrixShape& shape = cut.shape;
        return record_cached(recorder, view, op_.cache, "attention_coop",
                             {cut.threads, op_.shape.head_dim, kKeysPerTile, shape.m, shape.n, shape.k,
                              cut.subgroup, uint32_t(view.kind), cut.parts},
                             {view.slot(op_.q), view.slot(op_.y), view.step, cache.keys, cache.values,
                              view.vector(op_.sinks, view.step), partials, view.caches.counters()},
                             push, groups, flops);
    }

    std::optional<MatrixCut> matrices_, wide_;
    CacheTypes types_;
    Default few_threads_;
    uint32_t most_threads_, subgroup_;
    const Fragments* fragments_;
    uint64_t shared_;
};

// Attention does rope and store of one row by itself; of more, a dispatch before it does.
class AttendKernel : public gpu::AttendKernel<VulkanKernel, AttentionKernel, View> {
public:
    AttendKernel(const Attend& op, const Plan& plan, const Device& device)
        : gpu::AttendKernel<VulkanKernel, AttentionKernel, View>(
              op, plan, device, gpu::default_of(gpu::kAttentionDefaults, "fused", class_of(device))) {}

    Status record(Recorder& recorder, const View& view) const override {
        if (view.rows == 1) return attention_.record(recorder, view, &op_);
        if (op_.v_eps > 0.0f) {
            const Slot v = op_.store.v;
            RL_TRY(
                record_norm(recorder, view, {v, {{}, op_.v_eps}, op_.store.shape.head_dim, v}, view.slot(v)));
            recorder.barrier();
        }
        RL_TRY(record_rope_store(recorder, view, op_.store));
        recorder.begin_step(true);
        return attention_.record(recorder, view);
    }
};

}  // namespace

std::string cache_shader(std::string_view stem, const View& view, Cache cache) {
    const CacheTypes types = view.plan.cache(cache).types;
    return fmt::format("{}.{}", stem, is_plain_cache(types) ? cache_type_name(types.keys) : "mixed");
}

std::vector<uint32_t> cache_constants(const View& view, Cache cache) {
    const CacheTypes types = view.plan.cache(cache).types;
    if (is_plain_cache(types)) return {};
    return {uint32_t(types.keys), uint32_t(types.values)};
}

// On an H100 (Llama-3.1-8B, 8192 tokens in the cache) 256 give 293 tok/s, 512 277.
Default attention_groups(const Device& device) {
    if (device.attention_groups > 0) return asked_for(uint32_t(device.attention_groups));
    return gpu::default_of(gpu::kAttentionDefaults, "groups", class_of(device));
}

Default few_threads(const Device& device) {
    return gpu::default_of(gpu::kAttentionDefaults, "threads", class_of(device),
                           {.most = own_threads(device)});
}

uint64_t few_shared(uint32_t head_dim, uint32_t queries, uint64_t threads) {
    const uint64_t fours = head_dim / 4, keys = threads / 4;
    return queries * (fours * 16 + keys * 16 + std::max<uint64_t>(128, 2 * keys) * 4 + 12) + 2 * fours * 16 +
           std::min(queries, 2u) * threads * 16 + 16;
}

std::unique_ptr<Kernel> make_attention_kernel(const Op& op, const Plan& plan, const Device& device) {
    if (const auto* o = std::get_if<RopeStore>(&op); o && o->shape.head_dim > kMostHeadDim) return nullptr;
    if (auto kernel = gpu::first_of<Gpu>(op, record_rope, record_kv_store, record_rope_store)) return kernel;
    if (const auto* o = attention_to(Keys::all, op)) {
        if (o->shape.head_dim > kMostHeadDim) return nullptr;
        return std::make_unique<AttentionKernel>(*o, plan, device);
    }
    if (const auto* o = std::get_if<Attend>(&op))
        return AttentionKernel::by_few(o->attention.shape, 1) &&
                       is_plain_cache(plan.cache(o->store.cache).types)
                   ? std::make_unique<AttendKernel>(*o, plan, device)
                   : nullptr;
    return nullptr;
}

}  // namespace redline::vulkan
