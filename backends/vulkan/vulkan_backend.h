// Vulkan as a backend: picks and opens a device, places weights, and hands out kernels.
#pragma once

#include "backends/gpu/backend.h"
#include "backends/vulkan/runtime/executable.h"

namespace redline::vulkan {

class VulkanBackend : public gpu::DeviceBackend<VulkanBackend, VulkanExecutable, Running>,
                      public SubmitsSteps {
public:
    // `why` the device was chosen, for DeviceInfo::detail.
    VulkanBackend(std::unique_ptr<Device> device, std::unique_ptr<Memory> memory,
                  const std::string& cache_folder, uint64_t asked, const std::string& why);

    bool has_kernels(const Format& format) const override;
    double row_cost(uint32_t rows) const override;
    Status prepare(std::span<Executable* const> executables, std::span<const uint32_t> rows) override {
        return VulkanExecutable::prepare(executables, rows, pipelines_);
    }
    bool overlaps() const override { return true; }
    uint64_t kernels_hash() const override;
    Result<std::vector<std::unique_ptr<Executable>>> record_group(PlanGroup plans, WeightStore& weights,
                                                                  CacheStore& caches, Record mode) override;
    double measure_read_bandwidth() override;
    double take_longest_submission() override { return device_->pace().take_longest(); }
    bool kept_awake() const override { return busy_ && busy_->when.helps(); }
    // Which elements of matrices an invocation holds.
    Status find_fragments();
    // Between the parts of a step that the CPU has others of, where that helps.
    void keep_awake() { busy_ = std::make_unique<KeepBusy>(*device_, *memory_, pipelines_); }

    Memory& memory() { return *memory_; }
    Pipelines& pipelines() { return pipelines_; }
    Device& opened() { return *device_; }

    Running::Resources with(const WeightStore& weights, const CacheStore& caches, Memory& memory) {
        return {static_cast<const VulkanWeights&>(weights), static_cast<const VulkanCaches&>(caches),
                *device_, memory, pipelines_};
    }

private:
    Pipelines pipelines_;
    std::unique_ptr<KeepBusy> busy_;
};

Result<std::unique_ptr<VulkanBackend>> open_vulkan_backend(const BackendOptions& options);

}  // namespace redline::vulkan
