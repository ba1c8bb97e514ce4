// A plan on a Vulkan device: buffers, and command buffers recorded once per class of row counts and replayed.
#pragma once

#include "backends/gpu/executable.h"
#include "cache_store.h"
#include "keep_busy.h"
#include "stopwatch.h"
#include "weights.h"

#include <array>
#include <map>
#include <optional>

namespace redline::vulkan {

// Steps are recorded for so many rows, or for as many as the plan has.
constexpr std::array<uint32_t, 9> kRowClasses = {1, 2, 4, 8, 16, 32, 64, 128, 512};

// Of 32 elements in int8, as shaders/include/leave_row.glsl lays them out.
constexpr uint64_t kLeftUnitBytes = 48;
static_assert(kLeftUnitBytes <= kHandedUnitBytes);
// Up to so many rows are left as halfs: with what is known of two parts of 32 elements of each, as
// shaders/include/handed_halfs.glsl lays them out. On an H200 9 to 16 rows would take 2 to 4 % more so.
constexpr uint32_t kMostHandedRows = 8;
static_assert(kMostHandedRows * (32 * 2 + 2 * 8) <= kHandedFewUnitBytes);

// What kernels see while they are recorded.
struct View : gpu::StepView<VulkanWeights, VulkanCaches> {
    Binding arena;
    Binding scratch;
    Binding input;    // what the host gives with a step, for an Input
    Binding lookups;  // likewise for a Lookup
    Binding step;     // see shaders/include/step.glsl
    std::vector<uint32_t> rope_offsets;
    bool mixed = false;
    // Of the kernel that is recorded, in a step of one row: its operand in int8 as the kernel that computed
    // it left it, and where it leaves its own row so, for a step with this norm. Of no bytes: not.
    Binding taken, left;
    Norm left_norm;
    // Likewise the rows of a step of few as halfs; in how many parts each of those that are taken was left,
    // and whether their scales are there; and the counter of who leaves them.
    Binding few_taken, few_left;
    uint32_t parts_taken = 0;
    bool scales_taken = false;
    uint32_t leave_counter = 0;
    // Several rows go through the kernels of one, beside each other, and are left one behind the other.
    bool apart = false;
    uint32_t apart_groups = 0;  // then at most so many work-groups have all rows of a dispatch
    bool by_row() const { return apart || rows == 1; }
    uint32_t left_units() const { return uint32_t(left.bytes / kLeftUnitBytes) / (apart ? rows : 1); }

    // See gpu::StepExecutable.
    void take_row(Slot s) { taken = int8_row(s); }
    void leave_row(Slot s) {
        left = int8_row(s);
        left_norm = plan.slot(s).norm;
    }
    template <class LeavingKernel>
    void take_few(Slot s, uint32_t parts, const LeavingKernel& leaver) {
        few_taken = handed_rows(s);
        parts_taken = parts;
        scales_taken = leaver.leaves_scales();
    }
    void leave_few(Slot s) {
        few_left = handed_rows(s);
        left_norm = plan.slot(s).norm;
        leave_counter = VulkanCaches::kCounters + uint32_t(s.index) % VulkanCaches::kLeaveCounters;
    }

    Binding slot(Slot s) const {
        return {arena.buffer, plan.slot(s).offset,
                std::max<uint64_t>(16, uint64_t(width(s)) * 4 * rows_of(s)), arena.guard};
    }
    Binding int8_row(Slot s) const {
        return {arena.buffer, plan.slot(s).offset, width(s) / 32 * kLeftUnitBytes, arena.guard};
    }
    Binding handed_rows(Slot s) const {
        return {arena.buffer, plan.slot(s).offset, plan.slot_bytes(s), arena.guard};
    }
    // Of `bytes` from `offset` on; both are multiples of 256. A part of a kernel may get scratch that begins
    // further on.
    Binding scratch_at(uint64_t offset, uint64_t bytes) const {
        return {scratch.buffer, scratch.offset + offset, std::max<uint64_t>(16, bytes)};
    }
    const PlacedWeight& weight(Weight w) const { return weights[w]; }
    // A vector, or `otherwise` where the op has none: kernels are told not to read it.
    Binding vector(Weight w, Binding otherwise) const {
        return w ? Binding(weights[w].parts[0].buffer) : otherwise;
    }
};

class VulkanKernel : public Kernel {
public:
    virtual Status record(Recorder& recorder, const View& view) const = 0;
    // Of the scratch that kernels share, in bytes.
    virtual uint64_t scratch(const Plan&) const { return 0; }
    // In a step of few rows: in how many parts the kernel leaves each row as halfs, if it does so, and
    // whether it takes such rows.
    virtual uint32_t parts_left(const View&) const { return 0; }
    virtual bool leaves_scales() const { return false; }
    virtual bool takes_halfs(const View&) const { return false; }
};

using MakesKernel = std::unique_ptr<Kernel>(const Op& op, const Plan& plan, const Device& device);
MakesKernel make_product_kernel, make_attention_kernel, make_expert_kernel, make_vector_kernel,
    make_recurrent_kernel, make_latent_kernel, make_block_kernel;

// What steps work in.
struct Workspace {
    explicit Workspace(Device& opened) : device(opened) {}
    ~Workspace();
    Workspace(const Workspace&) = delete;
    Workspace& operator=(const Workspace&) = delete;
    Status allocate(Memory& memory, const gpu::StepBytes& bytes);

    Device& device;
    Buffer arena, scratch;
    Buffer step;                // its inputs: written by the host where it is mapped,
    Buffer inputs[gpu::kRing];  // copied from one of these where it is not
    Buffer output;
    VkFence fences[gpu::kRing] = {};
};

// For gpu::StepExecutable and gpu::DeviceBackend.
struct Running : Caching {
    using Weights = VulkanWeights;
    using Caches = VulkanCaches;
    using Loading = vulkan::Loading;
    using Kernel = VulkanKernel;
    using View = vulkan::View;
    using Workspace = vulkan::Workspace;
    struct Resources {
        const VulkanWeights& weights;
        const VulkanCaches& caches;
        Device& device;
        Memory& memory;
        Pipelines& pipelines;
    };
    static constexpr MakesKernel* kMakers[] = {make_product_kernel, make_attention_kernel, make_expert_kernel,
                                               make_vector_kernel,  make_recurrent_kernel, make_latent_kernel,
                                               make_block_kernel};
    static bool reads(const Device&, const CacheInfo& cache) {
        return cache.rank == 0 || is_plain_cache(cache.types);
    }
    static constexpr uint32_t kMostHanded = kMostHandedRows;
    static bool picks_best(const Device& device);
    static uint64_t picked_bytes(const Plan& plan) { return best_between_bytes(plan); }
};

class VulkanExecutable : public gpu::StepExecutable<VulkanExecutable, Running> {
public:
    static Result<std::vector<std::unique_ptr<Executable>>> create_group(PlanGroup plans,
                                                                         const Resources& with, Record mode);
    // See Backend::prepare().
    static Status prepare(std::span<Executable* const> executables, std::span<const uint32_t> rows,
                          Pipelines& pipelines);
    ~VulkanExecutable() override;
    // Between steps of one token; `busy` outlives this.
    void keep_awake(KeepBusy& busy) { busy_ = &busy; }
    Status run(const StepParams& params) override;

private:
    friend StepExecutable;
    struct Recorded {
        StepLayout inputs;
        Recording copies;  // one command buffer per slot of the ring, if inputs are copied
        Recording steps;
        double dispatch_seconds;  // that the steps were recorded for
        Meter meter;
    };

    using StepExecutable::StepExecutable;
    using StepExecutable::view_of;
    uint32_t row_class(uint32_t rows) const;
    View view_of(uint32_t rows, const StepLayout& inputs) const;
    // The best of a single row are wanted from the first token on; of several, when a step asks for them.
    bool picks_at_once() const { return bound_.plan.max_rows == 1 && most_best() > 0; }
    Result<Recorded*> recorded(uint32_t rows, bool best, StepKind kind);
    Status fit_to_pace(Recorded& commands, uint32_t rows, bool best);
    Result<Recording> record_copies(const StepLayout& inputs);
    Result<Recording> record_steps(const View& view, double dispatch_seconds, bool best);
    Status record_steps(Recorder& recorder, const View& view, bool best);
    Status add_wanted(uint32_t rows, bool best, StepKind kind, WantedPipelines& wanted);
    Status record_results(Recorder& recorder, const View& view, bool best) const;
    Status record_output(Recorder& recorder, const View& view) const;
    Status record_hidden(Recorder& recorder, const View& view) const;
    Status record_best(Recorder& recorder, const View& view) const;
    Status write_inputs(const StepLayout& layout, const StepParams& params, uint64_t slot);
    Status run_recorded(const StepParams& params);
    // `busy_seconds`: for how long the device is kept busy behind them.
    Status submit_all(std::span<const VkCommandBuffer> copy, Recorded& commands,
                      const std::atomic<bool>* cancel, double busy_seconds);
    Status run_apart(std::span<const VkCommandBuffer> buffers);
    Result<View> begin_trace(const StepParams& params);
    Result<double> trace(const View& view, size_t index);
    Status read_back(Slot slot, uint64_t bytes, const Buffer& mirror, uint64_t to);
    Status end_trace(const StepParams& params, const View& view);

    uint64_t turn_ = 0;
    // Counted over all steps, to check that the host writes and reads nothing that the device still works on.
    uint64_t submitted_ = 0, landed_ = 0;
    uint64_t read_by_[gpu::kRing] = {};  // the submission that reads a slot's inputs
    // By class of rows, kind, and whether the best outputs are wanted.
    std::map<std::tuple<uint32_t, StepKind, bool>, Recorded> recorded_;
    KeepBusy* busy_ = nullptr;
    KeepAwake::Part part_;
    Meter traced_;                      // of ops run one by one
    std::unique_ptr<Stopwatch> clock_;  // of traces
};

}  // namespace redline::vulkan
