// A plan on a HIP device: buffers, and for steps of few rows a graph per class of row counts, captured once
// and replayed. Longer steps are launched directly, and paced.
#pragma once

#include "backends/gpu/executable.h"
#include "cache_store.h"
#include "launcher.h"
#include "rank_link.h"
#include "weights.h"

#include <map>
#include <optional>

namespace redline::hip {

// What kernels see while they are launched. Mixed steps are of several and have `tiles`.
struct View : gpu::StepView<HipWeights, HipCaches> {
    std::byte* arena = nullptr;
    std::byte* scratch = nullptr;
    const args::Step* step = nullptr;
    const float* input = nullptr;    // what the host gives with a step, for an Input
    const float* lookups = nullptr;  // likewise for a Lookup
    std::vector<const float*> ropes = {};
    const args::Place* places = nullptr;  // of rows, and the lists of pages; null: of a sequence alone
    const uint32_t* pages = nullptr;
    const args::RowTile* tiles = nullptr;        // of a mixed step
    const args::SegmentState* states = nullptr;  // of the step's sequences; null: the plan has none
    uint64_t least_keys = 0;  // a row of the step sees so many keys, or more: see depth_class()
    // Of the kernel that is launched, in a step of one row: its operand in int8 as the kernel that computed
    // it left it, and where it leaves its row so.
    const std::byte* taken = nullptr;
    args::HandOver left = {};
    // Likewise the rows of a step of few as halfs; without what the kernels know by themselves. Taken halfs
    // have no scale of each row.
    uint16_t* halfs_taken = nullptr;
    args::TakenHalfs few_taken = {};
    args::LeftHalfs few_left = {};

    // See gpu::StepExecutable.
    void take_row(Slot s) { taken = arena + plan.slot(s).offset; }
    void leave_row(Slot s) { left = handed_row(s); }
    void take_few(Slot s, uint32_t parts, const Kernel&) {
        const Norm& norm = plan.slot(s).norm;
        halfs_taken = handed_halfs(s);
        few_taken = {handed_reaches(s), parts, nullptr, vector(norm.gain), norm.eps};
    }
    void leave_few(Slot s) {
        few_left = {handed_halfs(s), handed_reaches(s), vector(plan.slot(s).norm.gain), 0};
    }
    // Where a row is left in int8.
    args::HandOver handed_row(Slot s) const {
        return {arena + plan.slot(s).offset, vector(plan.slot(s).norm.gain), width(s) / 32};
    }

    uint32_t of_outputs(Slot s) const { return plan.slot(s).of_outputs; }
    args::Cache cache(Cache cache) const {
        args::Cache seen = cache_args(caches, cache);
        seen.places = places;
        seen.pages = pages ? pages + plan.cache(cache).first_page : nullptr;
        return seen;
    }
    float* slot(Slot s) const { return reinterpret_cast<float*>(arena + plan.slot(s).offset); }
    int32_t* ids(Slot s) const { return reinterpret_cast<int32_t*>(arena + plan.slot(s).offset); }
    float* state(Cache cache) const { return reinterpret_cast<float*>(caches[cache].keys.data()); }
    float* scratch_at(uint64_t offset, uint64_t /* bytes */ = 0) const {
        return reinterpret_cast<float*>(scratch + offset);
    }
    // A vector, or null where the op has none.
    const float* vector(Weight w) const {
        return w ? reinterpret_cast<const float*>(weights[w].buffer.data()) : nullptr;
    }

private:
    uint16_t* handed_halfs(Slot s) const { return reinterpret_cast<uint16_t*>(arena + plan.slot(s).offset); }
    args::Reach* handed_reaches(Slot s) const {
        return reinterpret_cast<args::Reach*>(handed_halfs(s) + uint64_t(width(s)) * args::kMostHanded);
    }
};

static_assert(args::kHandedUnitBytes <= kHandedUnitBytes);
// Halfs of a unit, and what is known of two parts of it.
static_assert(args::kMostHanded * (32 * 2 + 2 * sizeof(args::Reach)) <= kHandedFewUnitBytes);

class HipKernel : public Kernel {
public:
    virtual Status launch(Launcher& launcher, const View& view) const = 0;
    // Of the scratch that kernels share, in bytes.
    virtual uint64_t scratch(const Plan&) const { return 0; }
    // In a step of few rows: in how many parts the kernel leaves each row as halfs, if it does so, and
    // whether it takes such rows.
    virtual uint32_t parts_left(const View&) const { return 0; }
    virtual bool takes_halfs(const View&) const { return false; }
};

using MakesKernel = std::unique_ptr<Kernel>(const Op& op, const Plan& plan, const Device& device);
MakesKernel make_product_kernel, make_attention_kernel, make_expert_kernel, make_vector_kernel,
    make_recurrent_kernel, make_latent_kernel, make_block_kernel;

// Leaves the best outputs at the beginning of scratch.
Status launch_best(Launcher& launcher, const View& view);

// What steps work in.
struct Workspace {
    explicit Workspace(Device& opened) : device(opened) {}
    ~Workspace();
    Workspace(const Workspace&) = delete;
    Workspace& operator=(const Workspace&) = delete;
    Status allocate(Memory& memory, const gpu::StepBytes& bytes);

    Device& device;
    Buffer arena, scratch, step;
    Buffer inputs[gpu::kRing];
    Event sent[gpu::kRing] = {};  // behind the copy from that slot of the ring
    Buffer output;
    uint64_t turn = 0;
};

// For gpu::StepExecutable and gpu::DeviceBackend.
struct Running : Caching {
    using Weights = HipWeights;
    using Caches = HipCaches;
    using Loading = hip::Loading;
    using Kernel = HipKernel;
    using View = hip::View;
    using Workspace = hip::Workspace;
    struct Resources {
        const HipWeights& weights;
        const HipCaches& caches;
        Device& device;
        Memory& memory;
    };
    static constexpr MakesKernel* kMakers[] = {make_product_kernel, make_attention_kernel, make_expert_kernel,
                                               make_vector_kernel,  make_recurrent_kernel, make_latent_kernel,
                                               make_block_kernel};
    static bool reads(const Device& device, const CacheInfo& cache);
    static constexpr uint32_t kMostHanded = args::kMostHanded;
    static bool picks_best(const Device&) { return true; }
    static uint64_t picked_bytes(const Plan& plan) { return best_bytes(plan) + best_between_bytes(plan); }
};

class HipExecutable : public gpu::StepExecutable<HipExecutable, Running> {
public:
    static Result<std::vector<std::unique_ptr<Executable>>> create_group(PlanGroup plans,
                                                                         const Resources& with, Record mode);
    // Records the plan of a rank, with sums over all ranks before these steps.
    static Result<std::unique_ptr<Executable>> create_rank(BoundPlan plan, std::vector<RankSum> sums,
                                                           std::shared_ptr<HipRankLink> link, size_t rank,
                                                           const Resources& with, Record mode);
    ~HipExecutable() override;
    Status run(const StepParams& params) override;

private:
    friend StepExecutable;
    static constexpr uint32_t kReplayedRows = 64;  // steps of so few rows are replayed

    using StepExecutable::StepExecutable;
    const Functions& call() const { return with_.device.call(); }
    Status checked(Code code, std::string_view doing) const { return with_.device.checked(code, doing); }
    Status load_kernels() const;
    uint32_t row_class(uint32_t rows) const;
    using StepExecutable::view_of;
    View view_of(uint32_t rows, const StepLayout& inputs, uint64_t keys) const;
    Status launch_one(Launcher& launcher, const View& view, size_t index) const;
    Status launch_all(Launcher& launcher, const View& view, bool best) const;
    // The sums over ranks before a step.
    Status launch_sums(Launcher& launcher, const View& view, size_t index) const;
    Result<GraphExec> graph(const View& view, bool best);
    void drop_graphs();
    Status send_inputs(const StepParams& params, const StepLayout& inputs);
    Status read_output(const StepParams& params);
    Result<View> begin_trace(const StepParams& params);
    Result<double> trace(const View& view, size_t index);
    Status read_back(Slot slot, uint64_t bytes, const Buffer& mirror, uint64_t to);
    Status end_trace(const StepParams& params, const View&) { return read_output(params); }

    std::vector<RankSum> sums_;  // over all ranks; with a link
    std::shared_ptr<HipRankLink> link_;
    size_t rank_ = 0;
    uint64_t link_generation_ = 0;  // of the graphs
    // By class of rows, kind, and whether the best outputs are wanted.
    std::map<std::tuple<uint32_t, StepKind, uint64_t, bool>, GraphExec> graphs_;
};

}  // namespace redline::hip
