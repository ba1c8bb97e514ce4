// Records dispatches into command buffers that can be run again and again: descriptor sets, barriers where
// they are asked for, and a cut wherever the work recorded since the last one could keep the device busy for
// long. How many of them are handed over at once is decided when they run.
#pragma once

#include "memory.h"
#include "pipelines.h"

#include <memory>
#include <utility>

namespace redline::vulkan {

struct Binding {
    VkBuffer buffer = VK_NULL_HANDLE;
    uint64_t offset = 0;
    uint64_t bytes = 0;
    uint64_t guard = 0;  // behind them, where shaders could write but must not, see Memory

    Binding() = default;
    Binding(const Buffer& whole) : buffer(whole.handle()), bytes(whole.size()), guard(whole.guard()) {}
    Binding(VkBuffer handle, uint64_t at, uint64_t size, uint64_t behind = 0)
        : buffer(handle), offset(at), bytes(size), guard(behind) {}
};

// Work-groups of a dispatch. More than the device takes are an error, unless the kernel strides: its
// work-groups then go on along x by gl_NumWorkGroups.x until all is done, however few they are.
struct Groups {
    uint64_t x = 1, y = 1, z = 1;
    bool strides = false;
};
inline Groups striding(uint64_t x, uint64_t y = 1) {
    return {x, y, 1, true};
}

// Command buffers to be submitted in order, one after the other.
class Recording {
public:
    explicit Recording(Device& device) : device_(&device) {}
    Recording(Recording&& other) noexcept { *this = std::move(other); }
    Recording& operator=(Recording&& other) noexcept {
        std::swap(device_, other.device_);
        std::swap(segments, other.segments);
        std::swap(seconds, other.seconds);
        std::swap(pools, other.pools);
        return *this;
    }
    ~Recording();

    std::vector<VkCommandBuffer> segments;
    std::vector<double> seconds;  // of each segment, as assumed (Pace)
    std::vector<VkDescriptorPool> pools;

private:
    Device* device_ = nullptr;
};

// Pipelines that would be used, with names of their own.
class WantedPipelines {
public:
    void add(const PipelineSpec& spec) {
        names_.push_back(std::make_unique<std::string>(spec.shader));
        specs_.push_back(spec);
        specs_.back().shader = *names_.back();
    }
    std::span<const PipelineSpec> specs() const { return specs_; }

private:
    std::vector<std::unique_ptr<std::string>> names_;
    std::vector<PipelineSpec> specs_;
};

class Recorder {
public:
    // `dispatch_seconds` is what one dispatch may take, as assumed.
    Recorder(Device& device, Pipelines& pipelines, double dispatch_seconds = kFirstDispatchSeconds)
        : device_(device), pipelines_(pipelines), recording_(device), dispatch_seconds_(dispatch_seconds) {}

    // Records nothing, and adds to `wanted` what would be used for that.
    Recorder(Device& device, Pipelines& pipelines, WantedPipelines& wanted) : Recorder(device, pipelines) {
        wanted_ = &wanted;
    }

    Pipelines& pipelines() { return pipelines_; }
    Device& device() { return device_; }
    // A step of the plan begins; `wait`: it waits for all dispatches before.
    void begin_step(bool wait) {
        if (!wait) return;
        barrier();
        scratch_in_use_ = false;
    }
    // Between dispatches of one step.
    void barrier() { barrier_wanted_ = true; }
    // What is recorded next depends on nothing that the barrier would wait for: whether one was wanted.
    bool take_barrier() { return std::exchange(barrier_wanted_, false); }
    // This step uses the scratch that kernels share: it waits for a user since the last step that waited.
    void claim_scratch() {
        if (scratch_in_use_) barrier();
        scratch_in_use_ = true;
    }
    template <typename Args>
    Status dispatch(const PipelineSpec& spec, std::span<const Binding> bindings, const Args& args,
                    Groups groups, double flops = 0.0) {
        static_assert(sizeof(Args) <= kPushBytes);
        return add(spec, bindings, &args, sizeof(Args), groups, flops);
    }
    template <typename Args>
    Status dispatch(const PipelineSpec& spec, std::initializer_list<Binding> bindings, const Args& args,
                    Groups groups, double flops = 0.0) {
        return dispatch(spec, std::span<const Binding>(bindings), args, groups, flops);
    }
    // Work that may go into one dispatch: what takes more is cut where it is recorded.
    double flops_per_slice() const { return device_.pace().rates.flops * dispatch_seconds_; }
    // Ends the present command buffer.
    Status cut();
    Result<Recording> finish() &&;

private:
    Status add(const PipelineSpec& spec, std::span<const Binding> bindings, const void* push,
               uint32_t push_bytes, Groups groups, double flops);
    Status begin();
    Result<Groups> fitted(const PipelineSpec& spec, Groups groups) const;
    Result<VkDescriptorSet> make_set(const Pipeline& pipeline, std::span<const Binding> bindings);

    Device& device_;
    Pipelines& pipelines_;
    Recording recording_;
    VkCommandBuffer current_ = VK_NULL_HANDLE;
    double dispatch_seconds_;
    double seconds_ = 0.0;  // of the present command buffer, as assumed
    bool barrier_wanted_ = false;
    bool scratch_in_use_ = false;
    WantedPipelines* wanted_ = nullptr;
};

}  // namespace redline::vulkan
