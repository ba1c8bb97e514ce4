// Products by head, LatentStore, and attention to latents and entries.
#include "attention_kernel.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace redline::vulkan {

namespace {

// Of head_vec.comp.
constexpr uint32_t kHeadLanes = 4;
constexpr uint32_t kHeadTile = 64;  // of head_tile, both ways
// Of latent_attention.comp.
constexpr uint32_t kLatentThreads = 256;
constexpr uint32_t kSlices = 8, kCellQueries = 4, kCellKeys = 4;
constexpr uint32_t kMostQueries = 16;
constexpr uint32_t kMostSums = 16;  // fours of an invocation, that its registers have room for
constexpr uint64_t kMostShared = 32768;
// Of latent_coop.comp, at most: queries of a work-group, keys of a tile, sums of an invocation, and registers
// of it as far as they are counted, which leaves room for what is not.
constexpr uint32_t kMatrixQueries = 32, kMatrixKeys = 32, kLeastMatrixKeys = 16;
constexpr uint32_t kMostMatrixSums = 64, kMostRegisters = 200;
// Of latent_merge.comp.
constexpr uint32_t kMergeFours = 32;  // of a work-group
constexpr uint32_t kMostSplits = 256;

uint32_t begins_at_fours(const args::HeadArgs& push) {
    return push.x_width % 4 == 0 && push.x_stride % 4 == 0;
}

Status record_few_heads(Recorder& recorder, const View& view, const Product& op, const WeightPart& part,
                        const args::HeadArgs& push) {
    constexpr uint32_t kRows = kThreads / kHeadLanes;
    const uint32_t rows = view.rows_of(op.y()), tokens = power_of_two(rows);
    return recorder.dispatch({fmt::format("head_vec.{}", view.weight(op.w()).layout->name),
                              4,
                              1,
                              {kThreads, tokens, begins_at_fours(push)}},
                             {part.buffer, view.slot(op.x), view.slot(op.y()), view.step}, push,
                             striding((part.rows + kRows - 1) / kRows, (rows + tokens - 1) / tokens));
}

Status record_many_heads(Recorder& recorder, const View& view, const Product& op, const WeightPart& part,
                         args::HeadArgs push) {
    const PlacedWeight& w = view.weight(op.w());
    const uint64_t first_head = part.first / push.rows, last_head = (part.first + part.rows - 1) / push.rows;
    const uint32_t tokens = view.rows_of(op.y());
    const double per_token = 2.0 * double(part.rows) * double(w.cols);
    return in_slices(recorder, tokens, per_token, kHeadTile, [&](uint32_t first, uint32_t count) {
        push.first_token = first;
        const Groups groups = {(push.rows + kHeadTile - 1) / kHeadTile, (count + kHeadTile - 1) / kHeadTile,
                               last_head - first_head + 1};
        return recorder.dispatch({fmt::format("head_tile.{}", w.layout->name), 4, 1, {begins_at_fours(push)}},
                                 {part.buffer, view.slot(op.x), view.slot(op.y()), view.step}, push, groups,
                                 per_token * count);
    });
}

Status record_heads(Recorder& recorder, const View& view, const Product& op) {
    const PlacedWeight& w = view.weight(op.w());
    const Shape& shape = view.plan.weight(op.w()).tensor.shape;
    args::HeadArgs push = {};
    push.rows = uint32_t(shape.rows);
    push.cols = uint32_t(shape.cols);
    push.rows_of = rows_kind(view.plan, op.y());
    push.x_width = view.width(op.x);
    push.x_stride = op.strides.x;
    push.y_width = view.width(op.y());
    push.y_stride = op.strides.y;
    for (const WeightPart& part : w.parts) {
        push.units = w.units(part);
        push.first_flat = uint32_t(part.first);
        push.flat_rows = uint32_t(part.rows);
        RL_TRY(view.rows_of(op.y()) <= kFewRows ? record_few_heads(recorder, view, op, part, push)
                                                : record_many_heads(recorder, view, op, part, push));
    }
    return {};
}

Status record_store(Recorder& recorder, const View& view, const LatentStore& op) {
    const CacheInfo& cache = view.plan.cache(op.cache);
    args::LatentStoreArgs push = {cache.rank, cache.head_dim, 0, 0, 0, cache.ratio};
    set_rows(push, cache);
    return recorder.dispatch(
        {cache_shader("latent_store", view, op.cache), 4, 1, {kThreads, uint32_t(view.kind)}},
        {view.slot(op.latent), view.slot(op.key ? op.key : op.latent), view.step, view.caches[op.cache].keys},
        push, striding(view.rows));
}

// `most`: that there is room for.
Default latent_default(std::string_view choice, uint32_t most, bool matrices = false) {
    return gpu::default_of(gpu::kLatentDefaults, choice, {}, {.most = most, .matrices = matrices});
}

// How queries of heads of one width share work-groups.
struct LatentFit {
    uint32_t heads, width, rank, threads;

    uint32_t whole_fours() const { return (rank + 3) / 4 * 4; }
    // Work-groups for the queries of so many rows.
    uint64_t groups_of(uint32_t rows, uint32_t queries) const {
        return gpu::query_groups(rows, heads, queries, false);
    }
    // Whether a work-group of so many has room in shared memory and registers; it keeps `more` bytes of each
    // key beside.
    bool queries_fit(uint32_t n, uint32_t more) const {
        const uint32_t cells = threads / kSlices, query_cells = (n + kCellQueries - 1) / kCellQueries;
        if (query_cells > cells) return false;
        const uint64_t keys = cells / query_cells * kCellKeys,
                       columns = (rank + 4 * threads - 1) / (4 * threads);
        const uint64_t shared = n * ((width + 3) / 4 * 16 + std::max<uint64_t>(128, keys) * 4 + 12) +
                                std::min(n, 2u) * threads * 16 + 4 + keys * more;
        return columns * n <= kMostSums && shared <= kMostShared;
    }
    // Queries of one work-group: as many as fit, for which the cache is read once.
    uint32_t queries(uint32_t rows, uint32_t more) const {
        const uint64_t there = uint64_t(rows) * heads;
        uint32_t n = 1;
        while (n < kMostQueries && n < there && queries_fit(n * 2, more)) n *= 2;
        return n;
    }
    // Work-groups, if there is enough to do, and queries of one of them.
    Choices choices(RowClass rows, uint32_t more, const Default& wanted) const {
        const uint32_t most = queries(rows == RowClass::one ? 1 : kMostQueries, more);
        return {groups_choice(wanted),
                choice("queries", latent_default("queries", most), gpu::halves_of(most / 2))};
    }
};

// How latent_coop.comp is cut.
struct MatrixCut {
    MatrixShape shape;
    uint32_t queries, keys, subgroup;

    uint32_t subgroups(const LatentFit& fit) const { return fit.threads / subgroup; }
    uint32_t score_matrices() const { return queries / shape.m * (keys / shape.n); }
    // Of the width: subgroups that share a matrix of scores.
    uint32_t parts(const LatentFit& fit) const { return subgroups(fit) / score_matrices(); }
    uint64_t shared(const LatentFit& fit) const {
        const uint64_t tile = uint64_t(keys) * (fit.width / 8 + 1),
                       results = uint64_t(subgroups(fit)) * shape.m * (shape.n / 4 + 1),
                       row = std::max(keys / 4, keys / 8 + shape.n / 4) | 1;
        return (std::max(tile, results) + parts(fit) * queries * row) * 16 + queries * 4;
    }
    // Of an invocation, for sums: of the parts of the rank that subgroups have, the largest.
    uint32_t sums(const LatentFit& fit) const {
        const uint32_t tiles = (fit.rank / shape.n + subgroups(fit) - 1) / subgroups(fit);
        return queries * tiles * shape.n / subgroup;
    }
    // Of an invocation, for its sums, its part of the queries and the tile that comes next. Queries are
    // counted as RDNA 3 keeps them, where two invocations hold the same row; other devices need half of that
    // for them.
    uint32_t registers(const LatentFit& fit) const {
        const uint32_t steps = (fit.width / shape.k + parts(fit) - 1) / parts(fit);
        const uint32_t ahead = (keys * fit.width / 8 + fit.threads - 1) / fit.threads;
        return sums(fit) + steps * shape.k / 2 + ahead * 4;
    }
    bool fits(const LatentFit& fit, uint64_t most_shared) const {
        return fit.threads % subgroup == 0 && queries % shape.m == 0 && keys % shape.n == 0 &&
               keys % shape.k == 0 && parts(fit) > 0 && parts(fit) * score_matrices() == subgroups(fit) &&
               sums(fit) <= kMostMatrixSums && shared(fit) <= most_shared;
    }
};

// All that a device has room for, the most queries and then the most keys first; none where the cache is not
// for matrix units: one in f32 is wanted for its precision.
std::vector<MatrixCut> matrix_cuts(const LatentFit& fit, CacheType type, const Device& device) {
    const MatrixShape* shape = device.use_matrix() ? matrix_shape(device.report()) : nullptr;
    if (!shape || type == CacheType::f32 || fit.width % 16 != 0 || fit.rank % 16 != 0 ||
        !Pipelines::exists("latent_coop.f16"))
        return {};
    std::vector<MatrixCut> cuts;
    for (uint32_t queries = kMatrixQueries; queries >= shape->m; queries /= 2)
        for (uint32_t keys = kMatrixKeys; keys >= kLeastMatrixKeys; keys /= 2) {
            std::optional<MatrixCut> best;
            for (const uint32_t subgroup : subgroup_sizes(device)) {
                const MatrixCut cut = {*shape, queries, keys, subgroup};
                if (cut.fits(fit, device.report().limits.maxComputeSharedMemorySize) &&
                    (!best || cut.registers(fit) < best->registers(fit)))
                    best = cut;
            }
            if (best) cuts.push_back(*best);
        }
    return cuts;
}

class LatentAttentionKernel : public SplitKernel {
public:
    LatentAttentionKernel(const Attention& op, const Plan& plan, const Device& device)
        : SplitKernel(op, plan.cache(op.cache).rank, device),
          fit_{op.shape.heads, plan.cache(op.cache).head_dim, dims_,
               std::min(own_threads(device), kLatentThreads)},
          cuts_(matrix_cuts(fit_, plan.cache(op.cache).types.keys, device)),
          type_(plan.cache(op.cache).types.keys) {}

    // Whether one query at least has room.
    bool fits() const { return fit_.queries_fit(1, 0); }

    Choices choices(RowClass rows) const override {
        const MatrixCut* cut = usual_cut(rows == RowClass::one ? 1 : kMatrixQueries);
        if (!cut) return fit_.choices(rows, 0, wanted_);
        std::vector<uint32_t> queries, keys;
        for (const MatrixCut& other : cuts_) {
            queries.push_back(other.queries);
            keys.push_back(other.keys);
        }
        return {groups_choice(wanted_groups(cut)),
                choice("queries", latent_default("queries", cut->queries, true), std::move(queries)),
                choice("keys", latent_default("keys", cut->keys, true), std::move(keys))};
    }

    Precision precision(uint64_t rows) const override {
        return cut_of(uint32_t(rows), false) ? gpu::attention_of_halfs(type_) : Precision();
    }

    uint64_t scratch(const Plan& plan) const override {
        return gpu::most_of_kinds(plan, [&](uint32_t rows, bool several) {
            return partial_bytes(rows, splits(plan, rows, several));
        });
    }

    Status record(Recorder& recorder, const View& view) const override {
        const bool several = view.kind == StepKind::several;
        const CacheInfo& cache = view.plan.cache(op_.cache);
        auto push =
            attention_args<args::AttentionArgs>(view, 1, view.rows, splits(view.plan, view.rows, several));
        const Binding partials = claim_partials(recorder, view, partial_bytes(view.rows, push.splits));
        // Rows are cut so that no dispatch alone fills a submission, with the cache full, or is higher than
        // the device takes; at whole work-groups.
        const uint32_t n = queries(view.rows, several),
                       together = several ? 1 : n / std::gcd(n, op_.shape.heads);
        const double per_row = 2.0 * op_.shape.heads * (fit_.width + fit_.rank) * double(cache.sequence_rows);
        const double highest = recorder.device().report().limits.maxComputeWorkGroupCount[1];
        const auto record_some = [&](uint32_t first, uint32_t rows) {
            push.first_row = first;
            return record_rows(recorder, view, push, rows, partials, per_row * rows);
        };
        RL_TRY(in_slices(recorder, view.rows, per_row, together, record_some,
                         highest / double(fit_.groups_of(1, n)) / together));
        return push.splits > 1 ? record_merge(recorder, view, push, partials) : Status{};
    }

private:
    // Unless another is chosen, for rows whose queries could share a work-group.
    const MatrixCut* usual_cut(uint32_t rows) const {
        const uint32_t there = rows * op_.shape.heads;
        const MatrixCut* usual = nullptr;
        for (const MatrixCut& cut : cuts_) {
            if (cut.registers(fit_) > kMostRegisters) continue;
            const bool longer = usual && cut.keys > usual->keys;
            const bool closer = usual && cut.keys == usual->keys && cut.queries < usual->queries;
            if (!usual || longer || (closer && cut.queries >= there)) usual = &cut;
        }
        return usual;
    }
    // Of a step of so many rows; none where it is not by matrices.
    const MatrixCut* cut_of(uint32_t rows, bool several) const {
        const RowClass size = row_class_of(rows);
        const MatrixCut* usual = usual_cut(several ? 1 : rows);
        if (!usual) return nullptr;
        const uint32_t queries = chosen(size, "queries", usual->queries),
                       keys = chosen(size, "keys", usual->keys);
        for (const MatrixCut& cut : cuts_)
            if (cut.queries == queries && cut.keys == keys) return &cut;
        return usual;
    }
    // Work-groups, if there is enough to do.
    Default wanted_groups(const MatrixCut* cut) const {
        return cut ? latent_default("groups", wanted_.value) : wanted_;
    }

    uint32_t queries(uint32_t rows, bool several) const {
        if (const MatrixCut* cut = cut_of(rows, several)) return cut->queries;
        return std::min(fit_.queries(several ? 1 : rows, 0),
                        chosen(row_class_of(rows), "queries", kMostQueries));
    }
    uint32_t splits(const Plan& plan, uint32_t rows, bool several) const {
        rows = plan.divided_rows(rows);
        const uint32_t groups = gpu::query_groups(rows, op_.shape.heads, queries(rows, several), several);
        return attention_splits(
            plan.cache(op_.cache).sequence_rows, groups,
            chosen(row_class_of(rows), "groups", wanted_groups(cut_of(rows, several)).value), kMostSplits);
    }

    Status record_rows(Recorder& recorder, const View& view, const args::AttentionArgs& push, uint32_t rows,
                       Binding partials, double flops) const {
        const bool several = view.kind == StepKind::several;
        const Binding q = view.slot(op_.q), y = view.slot(op_.y), keys = view.caches[op_.cache].keys;
        const uint32_t n = queries(view.rows, several), kind = uint32_t(view.kind);
        const Groups groups = {push.splits, gpu::query_groups(rows, op_.shape.heads, n, several)};
        if (const MatrixCut* cut = cut_of(view.rows, several)) {
            const MatrixShape& shape = cut->shape;
            return record_cached(recorder, view, op_.cache, "latent_coop",
                                 {fit_.threads, fit_.width, fit_.rank, n, cut->keys, shape.m, shape.n,
                                  shape.k, cut->subgroup, kind},
                                 {q, y, view.step, keys, partials}, push, groups, flops, cut->subgroup);
        }
        return record_cached(recorder, view, op_.cache, "latent_attention",
                             {fit_.threads, fit_.width, fit_.rank, n, kind},
                             {q, y, view.step, keys, view.step, partials}, push, groups, flops);
    }

    Status record_merge(Recorder& recorder, const View& view, args::AttentionArgs push,
                        Binding partials) const {
        const uint32_t n = queries(view.rows, view.kind == StepKind::several);
        push.first_row = 0;
        recorder.barrier();
        return recorder.dispatch(
            {"latent_merge", 3, 1, {kThreads, fit_.rank, n, uint32_t(view.kind), kMostSplits}},
            {view.slot(op_.y), view.step, partials}, push,
            {(fit_.whole_fours() / 4 + kMergeFours - 1) / kMergeFours,
             uint64_t(view.rows) * op_.shape.heads});
    }

    LatentFit fit_;
    std::vector<MatrixCut> cuts_;
    CacheType type_;
};

// Rows see different entries.
class EntryAttentionKernel : public RowKernel<EntryAttentionKernel> {
public:
    EntryAttentionKernel(const Attention& op, const Plan& plan, const Device& device)
        : RowKernel(op, plan.cache(op.cache).head_dim, device),
          fit_{op.shape.heads, dims_, dims_, std::min(own_threads(device), kLatentThreads)} {}

    // A row of the entries is told by a bit.
    bool fits(const Plan& plan) const {
        const auto few = [&](Cache cache) { return plan.cache(cache).capacity < uint64_t(1) << 31; };
        return fit_.queries_fit(1, kPlaceBytes) && few(op_.cache) &&
               (!op_.keys.entries || few(op_.keys.entries));
    }
    // Rows do not share work-groups.
    Choices choices(RowClass) const override { return fit_.choices(RowClass::one, kPlaceBytes, wanted_); }

    Status record(Recorder& recorder, const View& view) const override {
        auto push = attention_args<args::EntryArgs>(view, 1, view.rows, splits(view.plan, view.rows));
        push.window = uint32_t(view.plan.cache(op_.cache).window);
        push.has_sinks = bool(op_.sinks);
        if (op_.keys.entries) {
            const CacheInfo& entries = view.plan.cache(op_.keys.entries);
            push.entries_capacity = uint32_t(entries.capacity);
            push.entries_page = entries.first_page;
            push.ratio = entries.ratio;
        }
        if (op_.keys.chosen) push.most = view.width(op_.keys.chosen);
        const Binding partials = claim_partials(recorder, view, partial_bytes(view.rows, push.splits));
        const auto record_rows = [&](uint32_t first, const Groups& groups, double flops) {
            push.first_row = first;
            return record_cached(recorder, view, op_.cache, "entry_attention",
                                 {fit_.threads, fit_.width, queries_of(view.rows), uint32_t(view.kind)},
                                 {view.slot(op_.q), view.slot(op_.y), view.step, view.caches[op_.cache].keys,
                                  view.vector(op_.sinks, view.step), partials, view.caches.counters(),
                                  view.caches[op_.keys.entries ? op_.keys.entries : op_.cache].keys,
                                  op_.keys.chosen ? view.slot(op_.keys.chosen) : view.step},
                                 push, groups, flops);
        };
        return in_row_slices(recorder, view, push.splits, record_rows);
    }

    // Of a work-group.
    uint32_t queries_of(uint32_t rows) const {
        return std::min(fit_.queries(1, kPlaceBytes), chosen(row_class_of(rows), "queries", kMostQueries));
    }

private:
    static constexpr uint32_t kPlaceBytes = 4;  // of a key in shared memory

    LatentFit fit_;
};

}  // namespace

std::unique_ptr<Kernel> make_latent_kernel(const Op& op, const Plan& plan, const Device& device) {
    if (const Product* o = product_by(By::head, op)) {
        if (!has_layout(plan, o->w())) return nullptr;
        return simple([o = *o](Recorder& r, const View& v) { return record_heads(r, v, o); });
    }
    if (auto kernel = gpu::first_of<Gpu>(op, record_store)) return kernel;
    if (const auto* o = attention_to(Keys::latents, op)) {
        auto kernel = std::make_unique<LatentAttentionKernel>(*o, plan, device);
        if (kernel->fits()) return kernel;
    }
    if (const auto* o = attention_to(Keys::entries, op)) {
        auto kernel = std::make_unique<EntryAttentionKernel>(*o, plan, device);
        if (kernel->fits(plan)) return kernel;
    }
    return nullptr;
}

}  // namespace redline::vulkan
