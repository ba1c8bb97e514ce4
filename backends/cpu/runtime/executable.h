// A plan bound to CPU memory: the steps, the arena, and what kernels see while a step runs.
#pragma once

#include "backends/cpu/kernels/kernels.h"
#include "plan/alike_rows.h"
#include "region.h"
#include "threads.h"

#include <algorithm>

namespace redline::cpu {

constexpr uint64_t kLine = 64;

inline uint64_t aligned(uint64_t bytes) {
    return (bytes + kLine - 1) / kLine * kLine;
}

// Prepared activations at most, over few rows and many (kernels may prepare them differently).
inline uint64_t activation_bytes(Isa isa, const Format& format, size_t cols, size_t max_rows) {
    const uint64_t few = linear_kernel(isa, format, 1).activation_bytes(cols);
    return std::max<uint64_t>(few, linear_kernel(isa, format, max_rows).activation_bytes(cols));
}

// A weight as placed: a packed matrix (one per expert, expert_bytes apart) or a vector of floats.
struct PlacedWeight {
    PackedMatrix matrix;  // expert 0
    uint64_t expert_bytes = 0;
    const float* vector = nullptr;

    PackedMatrix expert(uint64_t e) const {
        PackedMatrix m = matrix;
        m.data += e * expert_bytes;
        return m;
    }
    const std::byte* panel(uint64_t e, uint64_t p) const {
        return matrix.data + e * expert_bytes + p * matrix.panel_bytes();
    }
};

class CpuWeights : public WeightStore {
public:
    CpuWeights(Region region, std::vector<PlacedWeight> placed)
        : region_(std::move(region)), placed_(std::move(placed)) {}
    uint64_t bytes() const override { return region_.size(); }
    const PlacedWeight& operator[](Weight w) const { return placed_[size_t(w.index)]; }
    Status check_guards() const { return region_.check(); }

private:
    Region region_;
    std::vector<PlacedWeight> placed_;
};

class CpuCaches : public CacheStore {
public:
    static Result<std::unique_ptr<CacheStore>> create(std::span<const CacheInfo> caches, bool guarded);
    uint64_t bytes() const override { return region_.size(); }
    Status read(Cache cache, uint64_t first, uint64_t count, std::span<std::byte> out) override;
    Status write(Cache cache, uint64_t first, uint64_t count, std::span<const std::byte> in) override;
    // As a sequence with these pages sees it.
    KvHead head(Cache cache, uint32_t kv_head, std::span<const uint32_t> pages = {}) const;
    float* state(Cache cache, uint64_t row) const;
    Status check_guards() const { return region_.check(); }

private:
    const CacheInfo& info(Cache cache) const { return caches_[size_t(cache.index)]; }

    std::vector<CacheInfo> caches_;
    std::vector<uint64_t> offsets_;  // of each in the region
    Region region_;
};

// What the kernels of one run share.
struct RunView {
    const Plan& plan;
    const CpuWeights& weights;
    const CpuCaches& caches;
    Isa isa;
    StepParams params;
    std::span<const Segment> segments = {};  // of its rows
    std::byte* arena = nullptr;
    std::byte* shared_scratch = nullptr;
    std::byte* thread_scratch = nullptr;  // thread_scratch_bytes per worker
    uint64_t thread_scratch_bytes = 0;
    const float* rope_tables = nullptr;  // see rope_table()
    std::atomic<uint32_t>* counters = nullptr;

    uint32_t rows() const { return uint32_t(params.tokens.size()); }
    uint32_t rows_of(Slot s) const {
        return plan.slot(s).of_outputs ? uint32_t(params.outputs.size()) : rows();
    }
    uint32_t width(Slot s) const { return plan.slot(s).width; }
    // The states of a row's sequence before and behind the step; the first is null where it is all zeros.
    std::pair<const float*, float*> states(Cache cache, uint64_t row) const {
        const StateRows at = params.states_of(row);
        return {params.rows[row].position == 0 ? nullptr : caches.state(cache, at.from),
                caches.state(cache, at.to)};
    }
    // Where a row's sequence has its states behind the row, which is not its last; null: they are not kept.
    float* states_behind(Cache cache, uint64_t row) const {
        const bool kept = !params.row_states.empty() && params.row_states[row] != kNoStates;
        return kept ? caches.state(cache, params.row_states[row]) : nullptr;
    }
    // Where a row's token lies in a cache.
    uint64_t cache_row(Cache cache, uint64_t row) const {
        return plan.cache(cache).row_of(params.rows[row].position, params.pages_of(row));
    }
    float* floats(Slot s) const { return reinterpret_cast<float*>(arena + plan.slot(s).offset); }
    int32_t* ids(Slot s) const { return reinterpret_cast<int32_t*>(arena + plan.slot(s).offset); }
    const float* vector(Weight w) const { return w ? weights[w].vector : nullptr; }
    std::byte* scratch(const Worker& worker) const {
        return thread_scratch + worker.index * thread_scratch_bytes;
    }
    // Cosines of a row's pairs, followed by its sines.
    const float* rope_row(uint32_t rope, uint32_t row) const;
};

// The items of a step, claimed one by one: a worker takes those of its own even share in order, so that what
// it reads is one stream, and then helps the others. A step has one counter per worker, zero when it starts.
class Claims {
public:
    Claims(const RunView& view, const Worker& worker, uint32_t step, uint64_t items)
        : worker_(worker), counters_(view.counters + size_t(step) * worker.count), items_(items) {}

    // False when nothing is left.
    bool next(uint64_t& item) {
        for (; helped_ < worker_.count; ++helped_) {
            const uint32_t owner = (worker_.index + helped_) % worker_.count;
            const Worker::Range share = Worker{nullptr, owner, worker_.count}.share(items_);
            item = share.begin + counters_[owner].fetch_add(1, std::memory_order_relaxed);
            if (item < share.end) return true;
        }
        return false;
    }

private:
    const Worker worker_;
    std::atomic<uint32_t>* counters_;
    uint64_t items_;
    uint32_t helped_ = 0;
};

// An op on the CPU. run() is called by every worker; steps are separated by barriers.
class CpuKernel : public Kernel {
public:
    virtual void run(const RunView& view, const Worker& worker, uint32_t step) const = 0;
    // Upper bounds for a plan, in bytes.
    virtual uint64_t shared_scratch(const Plan& plan, uint32_t workers) const;
    virtual uint64_t thread_scratch(const Plan& plan) const;
    // See AlikeRows.
    virtual bool alike_rows(const Plan&) const { return true; }
};

// The same of products with weights of this format.
bool alike_products(Isa isa, const Format& format);

// Of products.
Precision precision_of(Activations activations);

std::unique_ptr<Kernel> make_product_kernel(const Op& op, const Plan& plan, Isa isa);
std::unique_ptr<Kernel> make_attention_kernel(const Op& op, const Plan& plan, Isa isa);
std::unique_ptr<Kernel> make_expert_kernel(const Op& op, const Plan& plan, Isa isa);
std::unique_ptr<Kernel> make_vector_kernel(const Op& op, const Plan& plan, Isa isa);
std::unique_ptr<Kernel> make_recurrent_kernel(const Op& op, const Plan& plan, Isa isa);
std::unique_ptr<Kernel> make_stream_kernel(const Op& op, const Plan& plan, Isa isa);
std::unique_ptr<Kernel> make_block_kernel(const Op& op, const Plan& plan, Isa isa);
std::unique_ptr<Kernel> make_entry_kernel(const Op& op, const Plan& plan, Isa isa);

// What steps work in. Those of a PlanGroup share one, unless it is guarded: each has gaps of its own.
struct Workspace {
    Region arena, scratch;
};

class CpuExecutable : public Executable {
public:
    static Result<std::vector<std::unique_ptr<Executable>>> create_group(PlanGroup plans,
                                                                         const CpuWeights& weights,
                                                                         const CpuCaches& caches, Team& team,
                                                                         Isa isa, bool guarded);
    Status run(const StepParams& params) override;
    Status run_traced(const StepParams& params, const TraceSink& sink) override;
    std::span<const float> output() const override;
    std::span<const float> hidden() const override;

private:
    std::span<const float> rows_of(Slot slot, uint32_t rows) const;
    CpuExecutable(BoundPlan bound, const CpuWeights& weights, const CpuCaches& caches, Team& team, Isa isa);
    void size(bool guarded);
    uint64_t scratch_bytes() const { return shared_bytes_ + thread_bytes_ * team_.size(); }
    static Status share(std::span<const std::unique_ptr<CpuExecutable>> group, bool guarded);
    RunView prepare(const StepParams& params);
    TeamSize& team_size(uint32_t rows);
    void fill_rope(const RunView& view, const Worker& worker) const;
    Status check_guards() const;

    BoundPlan bound_;
    const CpuWeights& weights_;
    const CpuCaches& caches_;
    Team& team_;
    Isa isa_;
    std::shared_ptr<Workspace> workspace_;
    std::vector<float> input_;                          // a copy of a step's that lies in the workspace
    std::vector<ByteRange> arena_gaps_, scratch_gaps_;  // of guarded memory
    uint64_t shared_bytes_ = 0;
    uint64_t thread_bytes_ = 0;
    std::vector<float> rope_;
    std::vector<Segment> segments_;
    std::unique_ptr<std::atomic<uint32_t>[]> counters_;
    uint32_t rows_ = 0, outputs_ = 0;  // of the last step
    std::vector<TeamSize> sizes_;      // by the bits of the number of rows
};

}  // namespace redline::cpu
