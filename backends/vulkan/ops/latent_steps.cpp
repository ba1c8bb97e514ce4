// HeadLinear, LatentStore, LatentAttention and EntryAttention.
#include "steps.h"

#include <algorithm>
#include <numeric>

namespace redline::vulkan {

namespace {

// Of head_vec.comp.
constexpr uint32_t kHeadLanes = 4;
constexpr uint32_t kTile = 64;  // of head_mat, both ways
// Of latent_attention.comp.
constexpr uint32_t kLatentThreads = 256;
constexpr uint32_t kSlices = 8, kCellQueries = 4, kCellKeys = 4;
constexpr uint32_t kMostQueries = 16;
constexpr uint32_t kMostSums = 16;  // fours of an invocation, that its registers have room for
constexpr uint64_t kMostShared = 32768;
// Of latent_merge.comp.
constexpr uint32_t kMergeFours = 32;  // of a work-group
constexpr uint32_t kMostSplits = 256;

class HeadLinearKernel : public VulkanKernel {
public:
    explicit HeadLinearKernel(const HeadLinear& op) : op_(op) {}

    Status record(Recorder& recorder, const View& view) const override {
        const PlacedWeight& w = view.weight(op_.w);
        const Shape& shape = view.plan.weight(op_.w).tensor.shape;
        args::HeadArgs push = {};
        push.rows = uint32_t(shape.rows);
        push.cols = uint32_t(shape.cols);
        push.rows_of = rows_kind(view.plan, op_.y);
        push.x_width = view.width(op_.x);
        push.x_stride = op_.x_stride;
        push.y_width = view.width(op_.y);
        push.y_stride = op_.y_stride;
        for (const WeightPart& part : w.parts) {
            push.units = w.units(part);
            push.first_flat = uint32_t(part.first);
            push.flat_rows = uint32_t(part.rows);
            RL_TRY(view.rows_of(op_.y) <= kFewRows ? record_few(recorder, view, w, part, push)
                                                   : record_many(recorder, view, w, part, push));
        }
        return {};
    }

private:
    static uint32_t begins_at_fours(const args::HeadArgs& push) {
        return push.x_width % 4 == 0 && push.x_stride % 4 == 0;
    }

    Status record_few(Recorder& recorder, const View& view, const PlacedWeight& w, const WeightPart& part,
                      const args::HeadArgs& push) const {
        constexpr uint32_t kRows = kThreads / kHeadLanes;
        const uint32_t rows = view.rows_of(op_.y), tokens = power_of_two(rows);
        return recorder.dispatch(
            {fmt::format("head_vec.{}", w.layout->name), 4, 1, {kThreads, tokens, begins_at_fours(push)}},
            {part.buffer, view.slot(op_.x), view.slot(op_.y), view.step}, push,
            striding((part.rows + kRows - 1) / kRows, (rows + tokens - 1) / tokens));
    }

    Status record_many(Recorder& recorder, const View& view, const PlacedWeight& w, const WeightPart& part,
                       args::HeadArgs push) const {
        const uint64_t first_head = part.first / push.rows,
                       last_head = (part.first + part.rows - 1) / push.rows;
        const uint32_t tokens = view.rows_of(op_.y);
        const double per_token = 2.0 * double(part.rows) * double(w.cols);
        const double fit = std::max(1.0, recorder.flops_per_segment() / per_token / kTile);
        const uint32_t step = uint32_t(std::min(fit, 1e6)) * kTile;
        for (uint32_t first = 0; first < tokens; first += step) {
            const uint32_t count = std::min(step, tokens - first);
            push.first_token = first;
            const Groups groups = {(push.rows + kTile - 1) / kTile, (count + kTile - 1) / kTile,
                                   last_head - first_head + 1};
            RL_TRY(
                recorder.dispatch({fmt::format("head_mat.{}", w.layout->name), 4, 1, {begins_at_fours(push)}},
                                  {part.buffer, view.slot(op_.x), view.slot(op_.y), view.step}, push, groups,
                                  per_token * count));
        }
        return {};
    }

    HeadLinear op_;
};

Status record_store(Recorder& recorder, const View& view, const LatentStore& op) {
    const CacheInfo& cache = view.plan.cache(op.cache);
    args::LatentStoreArgs push = {cache.rank, cache.head_dim, 0, 0, 0, cache.ratio};
    set_rows(push, cache);
    return recorder.dispatch(
        {cache_shader("latent_store", view, op.cache), 4, 1, {kThreads, uint32_t(view.kind)}},
        {view.slot(op.latent), view.slot(op.key ? op.key : op.latent), view.step, view.caches[op.cache].keys},
        push, striding(view.rows));
}

// How queries of heads of one width share work-groups.
struct LatentFit {
    uint32_t heads, width, rank, threads;

    uint32_t whole_fours() const { return (rank + 3) / 4 * 4; }
    // Work-groups for the queries of so many rows.
    uint64_t groups_of(uint32_t rows, uint32_t queries) const {
        return (uint64_t(rows) * heads + queries - 1) / queries;
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
    Choices choices(RowClass rows, uint32_t more, uint32_t wanted) const {
        const uint32_t most = queries(rows == RowClass::one ? 1 : kMostQueries, more);
        std::vector<uint32_t> fewer;
        for (uint32_t n = most / 2; n > 0; n /= 2) fewer.push_back(n);
        return {choice("groups", wanted, {wanted / 4, wanted / 2, 2 * wanted, 4 * wanted}),
                choice("queries", most, std::move(fewer))};
    }
    uint64_t partial_bytes(uint32_t rows, uint32_t splits) const {
        return aligned(uint64_t(rows) * heads * splits * (whole_fours() + 2) * 4);
    }
};

class LatentAttentionKernel : public VulkanKernel {
public:
    LatentAttentionKernel(const LatentAttention& op, const Plan& plan, const Device& device)
        : op_(op),
          fit_{op.heads, plan.cache(op.cache).head_dim, plan.cache(op.cache).rank,
               std::min(own_threads(device), kLatentThreads)},
          wanted_(uint32_t(attention_groups(device))) {}

    // Whether one query at least has room.
    bool fits() const { return fit_.queries_fit(1, 0); }
    Choices choices(RowClass rows) const override { return fit_.choices(rows, 0, wanted_); }

    uint64_t scratch(const Plan& plan) const override {
        uint64_t most = 0;
        for (uint32_t rows = 1;; rows = std::min(rows * 2, plan.max_rows)) {
            for (const bool several : {false, plan.sizing.pages > 0})
                if (const uint32_t n = splits(plan, rows, several); n > 1)
                    most = std::max(most, fit_.partial_bytes(rows, n));
            if (rows == plan.max_rows) return most;
        }
    }

    Status record(Recorder& recorder, const View& view) const override {
        const bool several = view.kind == StepKind::several;
        const CacheInfo& cache = view.plan.cache(op_.cache);
        args::AttentionArgs push = {};
        push.heads = op_.heads;
        push.kv_heads = 1;
        set_rows(push, cache);
        push.splits = splits(view.plan, view.rows, several);
        push.scale = op_.scale;
        push.first_stat = view.rows * op_.heads * push.splits * fit_.whole_fours();
        Binding partials = view.step;
        if (push.splits > 1) {
            recorder.claim_scratch();
            partials = view.scratch_at(0, fit_.partial_bytes(view.rows, push.splits));
        }
        // Rows are cut so that no dispatch alone fills a submission, with the cache full, or is higher than
        // the device takes; at whole work-groups.
        const uint32_t n = queries(view.rows, several), together = several ? 1 : n / std::gcd(n, op_.heads);
        const double per_row = 2.0 * op_.heads * (fit_.width + fit_.rank) * double(cache.sequence_rows);
        const double highest = recorder.device().report().limits.maxComputeWorkGroupCount[1];
        const double fit = std::max(
            1.0, std::min(recorder.flops_per_segment() / per_row, highest / double(fit_.groups_of(1, n))) /
                     together);
        const uint32_t step = uint32_t(std::min(fit, 1e6)) * together;
        for (uint32_t first = 0; first < view.rows; first += step) {
            const uint32_t rows = std::min(step, view.rows - first);
            push.first_row = first;
            const uint64_t groups = several ? rows * fit_.groups_of(1, n) : fit_.groups_of(rows, n);
            RL_TRY(recorder.dispatch({cache_shader("latent_attention", view, op_.cache),
                                      6,
                                      1,
                                      {fit_.threads, fit_.width, fit_.rank, n, uint32_t(view.kind)}},
                                     {view.slot(op_.q), view.slot(op_.y), view.step,
                                      view.caches[op_.cache].keys, view.step, partials},
                                     push, {push.splits, groups}, per_row * rows));
        }
        if (push.splits == 1) return {};
        recorder.barrier();
        push.first_row = 0;
        const uint32_t fours = fit_.whole_fours() / 4;
        return recorder.dispatch(
            {"latent_merge", 3, 1, {kThreads, fit_.rank, n, uint32_t(view.kind), kMostSplits}},
            {view.slot(op_.y), view.step, partials}, push,
            {(fours + kMergeFours - 1) / kMergeFours, uint64_t(view.rows) * op_.heads});
    }

private:
    uint32_t queries(uint32_t rows, bool several) const {
        return std::min(fit_.queries(several ? 1 : rows, 0),
                        chosen(row_class_of(rows), "queries", kMostQueries));
    }
    uint32_t splits(const Plan& plan, uint32_t rows, bool several) const {
        const uint32_t n = queries(rows, several);
        return attention_splits(plan.cache(op_.cache).sequence_rows,
                                several ? rows * fit_.groups_of(1, n) : fit_.groups_of(rows, n),
                                chosen(row_class_of(rows), "groups", wanted_), kMostSplits);
    }
    LatentAttention op_;
    LatentFit fit_;
    uint32_t wanted_;  // work-groups, if there is enough to do
};

// Groups of queries are of one row each: rows see different entries.
class EntryAttentionKernel : public VulkanKernel {
public:
    EntryAttentionKernel(const EntryAttention& op, const Plan& plan, const Device& device)
        : op_(op),
          fit_{op.heads, plan.cache(op.cache).head_dim, plan.cache(op.cache).head_dim,
               std::min(own_threads(device), kLatentThreads)},
          wanted_(uint32_t(attention_groups(device))) {}

    // A row of the entries is told by a bit.
    bool fits(const Plan& plan) const {
        const auto few = [&](Cache cache) { return plan.cache(cache).capacity < uint64_t(1) << 31; };
        return fit_.queries_fit(1, kPlaceBytes) && few(op_.cache) && (!op_.entries || few(op_.entries));
    }
    // Rows do not share work-groups.
    Choices choices(RowClass) const override { return fit_.choices(RowClass::one, kPlaceBytes, wanted_); }

    uint64_t scratch(const Plan& plan) const override {
        uint64_t most = 0;
        for (uint32_t rows = 1;; rows = std::min(rows * 2, plan.max_rows)) {
            if (const uint32_t n = splits(plan, rows); n > 1)
                most = std::max(most, fit_.partial_bytes(rows, n));
            if (rows == plan.max_rows) return most;
        }
    }

    Status record(Recorder& recorder, const View& view) const override {
        const CacheInfo& cache = view.plan.cache(op_.cache);
        args::EntryArgs push = {};
        push.heads = op_.heads;
        push.kv_heads = 1;
        set_rows(push, cache);
        push.window = uint32_t(cache.window);
        push.splits = splits(view.plan, view.rows);
        push.has_sinks = bool(op_.sinks);
        push.scale = op_.scale;
        push.first_stat = view.rows * op_.heads * push.splits * fit_.whole_fours();
        if (op_.entries) {
            const CacheInfo& entries = view.plan.cache(op_.entries);
            push.entries_capacity = uint32_t(entries.capacity);
            push.entries_page = entries.first_page;
            push.ratio = entries.ratio;
        }
        if (op_.chosen) push.most = view.width(op_.chosen);
        Binding partials = view.step;
        if (push.splits > 1) {
            recorder.claim_scratch();
            partials = view.scratch_at(0, fit_.partial_bytes(view.rows, push.splits));
        }
        // Rows are cut so that no dispatch alone fills a submission or is higher than the device takes.
        const double per_row = 4.0 * op_.heads * fit_.width * double(most_keys(view.plan));
        const double highest = recorder.device().report().limits.maxComputeWorkGroupCount[1];
        const uint32_t n = queries(view.rows);
        const uint64_t groups = fit_.groups_of(1, n);
        const double fit = std::min(recorder.flops_per_segment() / per_row, highest / double(groups));
        const uint32_t step = uint32_t(std::clamp(fit, 1.0, 1e6));
        for (uint32_t first = 0; first < view.rows; first += step) {
            const uint32_t rows = std::min(step, view.rows - first);
            push.first_row = first;
            RL_TRY(
                recorder.dispatch({cache_shader("entry_attention", view, op_.cache),
                                   9,
                                   1,
                                   {fit_.threads, fit_.width, n, uint32_t(view.kind)}},
                                  {view.slot(op_.q), view.slot(op_.y), view.step, view.caches[op_.cache].keys,
                                   view.vector(op_.sinks, view.step), partials, view.caches.counters(),
                                   view.caches[op_.entries ? op_.entries : op_.cache].keys,
                                   op_.chosen ? view.slot(op_.chosen) : view.step},
                                  push, {push.splits, rows * groups}, per_row * rows));
        }
        return {};
    }

private:
    static constexpr uint32_t kPlaceBytes = 4;  // of a key in shared memory

    // That a row sees.
    uint64_t most_keys(const Plan& plan) const {
        const uint64_t context = plan.sizing.context;
        uint64_t entries = op_.entries ? context / plan.cache(op_.entries).ratio : 0;
        if (op_.chosen) entries = std::min<uint64_t>(entries, plan.slot(op_.chosen).width);
        return std::min(plan.cache(op_.cache).window, context) + entries;
    }
    // Of a work-group.
    uint32_t queries(uint32_t rows) const {
        return std::min(fit_.queries(1, kPlaceBytes), chosen(row_class_of(rows), "queries", kMostQueries));
    }
    uint32_t splits(const Plan& plan, uint32_t rows) const {
        return attention_splits(most_keys(plan), rows * fit_.groups_of(1, queries(rows)),
                                chosen(row_class_of(rows), "groups", wanted_));
    }

    EntryAttention op_;
    LatentFit fit_;
    uint32_t wanted_;  // work-groups, if there is enough to do
};

}  // namespace

std::unique_ptr<Kernel> make_latent_kernel(const Op& op, const Plan& plan, const Device& device) {
    if (const auto* o = std::get_if<HeadLinear>(&op))
        return has_layout(plan, o->w) ? std::make_unique<HeadLinearKernel>(*o) : nullptr;
    if (const auto* o = std::get_if<LatentStore>(&op))
        return simple([o = *o](Recorder& r, const View& v) { return record_store(r, v, o); });
    if (const auto* o = std::get_if<LatentAttention>(&op)) {
        auto kernel = std::make_unique<LatentAttentionKernel>(*o, plan, device);
        if (kernel->fits()) return kernel;
    }
    if (const auto* o = std::get_if<EntryAttention>(&op)) {
        auto kernel = std::make_unique<EntryAttentionKernel>(*o, plan, device);
        if (kernel->fits(plan)) return kernel;
    }
    return nullptr;
}

}  // namespace redline::vulkan
