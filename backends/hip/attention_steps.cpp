// Rope, KvStore, RopeStore and Attention.
#include "steps.h"

namespace redline::hip {

namespace {

constexpr uint32_t kMostQueries = 8;
// As kernels/attention_few.h has them.
constexpr uint32_t kFewSplits = 64;
constexpr uint64_t kFewLeastKeys = 64;
constexpr uint32_t kFewThreads = 256;
constexpr uint32_t kFewBlocksPerUnit = 2;  // that fit into a multiprocessor at a time

std::string cache_module(const View& view) {
    return fmt::format("cache_{}", cache_type_name(view.plan.cache.type));
}
std::string cache_kernel(std::string_view stem, const View& view) {
    return fmt::format("{}_{}", stem, cache_type_name(view.plan.cache.type));
}

class RopeKernel : public HipKernel {
public:
    explicit RopeKernel(const Rope& op) : op_(op) {}
    Status launch(Launcher& launcher, const View& view) const override {
        const RopeSpec& rope = view.plan.ropes[op_.rope];
        const uint32_t pairs = uint32_t(rope.inverse_frequency.size());
        if (pairs == 0) return {};
        const args::RopeArgs args = {view.step,      view.ropes[op_.rope], view.slot(op_.x),
                                     op_.heads,      op_.head_dim,         pairs,
                                     rope.half_split};
        return launcher.launch(
            "vector", "rope", {blocks_for(uint64_t(view.rows) * op_.heads * pairs, kThreads), 1, 1, kThreads},
            args);
    }

private:
    Rope op_;
};

class KvStoreKernel : public HipKernel {
public:
    explicit KvStoreKernel(const KvStore& op) : op_(op) {}
    Status launch(Launcher& launcher, const View& view) const override {
        const args::StoreArgs args = {view.step, view.slot(op_.k), view.slot(op_.v),
                                      view.cache.layer(op_.layer)};
        return launcher.launch(cache_module(view), cache_kernel("kv_store", view),
                               {view.rows * op_.shape.kv_heads, 1, 1, kThreads}, args);
    }

private:
    KvStore op_;
};

class RopeStoreKernel : public HipKernel {
public:
    explicit RopeStoreKernel(const RopeStore& op) : op_(op) {}
    Status launch(Launcher& launcher, const View& view) const override {
        const RopeSpec& rope = view.plan.ropes[op_.rope];
        args::RopeStoreArgs args = {};
        args.step = view.step;
        args.table = view.ropes[op_.rope];
        args.q = view.slot(op_.q);
        args.k = view.slot(op_.k);
        args.v = view.slot(op_.v);
        args.q_gain = view.vector(op_.q_norm.gain);
        args.k_gain = view.vector(op_.k_norm.gain);
        args.cache = view.cache.layer(op_.layer);
        args.heads = op_.shape.heads;
        args.pairs = uint32_t(rope.inverse_frequency.size());
        args.half_split = rope.half_split;
        args.q_eps = op_.q_norm.eps;
        args.k_eps = op_.k_norm.eps;
        return launcher.launch(cache_module(view), cache_kernel("rope_store", view),
                               {view.rows * (op_.shape.heads + op_.shape.kv_heads), 1, 1, kThreads}, args);
    }

private:
    RopeStore op_;
};

class AttentionKernel : public HipKernel {
public:
    AttentionKernel(const Attention& op, const Device& device)
        : op_(op), units_(std::max(4u, device.report().multiprocessors)) {}

    uint64_t scratch(const Plan& plan) const override {
        uint64_t most = 0;
        for (uint32_t rows = 1;; rows = std::min(rows * 2, plan.max_rows)) {
            most = std::max(most, partial_bytes(rows, splits(plan, rows)));
            if (rows == plan.max_rows) return most;
        }
    }

    Status launch(Launcher& launcher, const View& view) const override {
        const HeadShape& s = op_.shape;
        args::AttentionArgs args = {};
        args.step = view.step;
        args.q = view.slot(op_.q);
        args.y = view.slot(op_.y);
        args.sinks = view.vector(op_.sinks);
        args.partials = view.scratch_at(0);
        args.counters = view.cache.counters();
        args.cache = view.cache.layer(op_.layer);
        args.rows = view.rows;
        args.heads = s.heads;
        args.window = op_.window;
        args.splits = splits(view.plan, view.rows);
        args.scale = op_.scale;
        args.softcap = op_.softcap;
        // Rows are cut so that no launch takes long, with the cache full.
        const double per_row = 4.0 * s.heads * s.head_dim * double(view.plan.cache.capacity);
        const double fit = std::clamp(launcher.flops_per_launch() / per_row / kMostQueries, 1.0, 1000.0);
        const uint32_t step = uint32_t(fit) * kMostQueries, n = queries(view.rows);
        const std::string kernel =
            cache_kernel(fmt::format("attention_{}_{}_{}", whole_eights() ? "few" : "any", n, dims()), view);
        for (uint32_t first = 0; first < view.rows; first += step) {
            const uint32_t rows = std::min(step, view.rows - first), blocks = (rows * group() + n - 1) / n;
            args.first_row = first;
            RL_CHECK(args.splits == 1 || blocks * s.kv_heads <= HipCache::kCounters,
                     "attention of {} rows with {} heads is split", rows, s.heads);
            RL_TRY(launcher.launch(cache_module(view), kernel, {args.splits, blocks, s.kv_heads, kFewThreads},
                                   args, per_row * rows));
        }
        return {};
    }

private:
    uint32_t group() const { return op_.shape.heads / op_.shape.kv_heads; }
    bool whole_eights() const { return op_.shape.head_dim % 8 == 0; }
    // The head sizes that kernels are built for are upper bounds.
    uint32_t dims() const {
        const uint32_t dims = op_.shape.head_dim;
        if (dims <= 64) return 64;
        if (dims <= 128 && whole_eights()) return 128;
        return dims <= 256 ? 256 : 512;
    }
    // Queries of one block: as many as share a kv head, and fit into its registers.
    uint32_t queries(uint32_t rows) const {
        if (!whole_eights()) return dims() > 256 ? 2 : 4;
        const uint32_t most = dims() > 256 ? 2 : dims() > 128 ? 4 : kMostQueries;
        return std::min(most, power_of_two(rows * group()));
    }

    // Enough blocks to fill the device, but no more than the cache has keys for. Those without keys end at
    // once.
    uint32_t splits(const Plan& plan, uint32_t rows) const {
        const uint32_t n = queries(rows);
        const uint64_t all = uint64_t(op_.shape.kv_heads) * ((rows * group() + n - 1) / n);
        const uint64_t most =
            std::clamp<uint64_t>((plan.cache.capacity + kFewLeastKeys - 1) / kFewLeastKeys, 1, kFewSplits);
        return uint32_t(std::clamp<uint64_t>(units_ * kFewBlocksPerUnit / all, 1, most));
    }

    uint64_t partial_bytes(uint32_t rows, uint32_t splits) const {
        if (splits == 1) return 0;
        return aligned(uint64_t(rows) * op_.shape.heads * splits * (op_.shape.head_dim + 2) * 4);
    }

    Attention op_;
    uint32_t units_;  // multiprocessors
};

}  // namespace

std::unique_ptr<Kernel> make_attention_kernel(const Op& op, const Plan& plan, const Device& device) {
    if (const auto* o = std::get_if<Rope>(&op)) return std::make_unique<RopeKernel>(*o);
    if (const auto* o = std::get_if<KvStore>(&op)) return std::make_unique<KvStoreKernel>(*o);
    if (const auto* o = std::get_if<RopeStore>(&op)) {
        if (o->shape.head_dim > args::kMostHeadDim) return nullptr;
        return std::make_unique<RopeStoreKernel>(*o);
    }
    if (const auto* o = std::get_if<Attention>(&op)) {
        // Kernels number the bytes of a head's keys with words.
        const bool too_long = plan.cache.capacity * o->shape.head_dim * 4 > UINT32_MAX;
        if (o->shape.head_dim > args::kMostHeadDim || too_long) return nullptr;
        return std::make_unique<AttentionKernel>(*o, device);
    }
    return nullptr;
}

}  // namespace redline::hip
