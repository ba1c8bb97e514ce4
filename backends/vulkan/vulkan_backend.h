// Vulkan as a backend: picks and opens a device, places weights, and hands out kernels.
#pragma once

#include "backends/vulkan/runtime/executable.h"
#include "plan/alike_rows.h"
#include "plan/backend_parts.h"
#include "plan/row_costs.h"

namespace redline::vulkan {

class VulkanBackend : public Backend,
                      public EmbeddedKernels,
                      public RefillsWeights,
                      public SubmitsSteps,
                      public AlikeRows,
                      public RowCosts {
public:
    // `why` the device was chosen, for DeviceInfo::detail.
    VulkanBackend(std::unique_ptr<Device> device, std::unique_ptr<Memory> memory,
                  const std::string& cache_folder, uint64_t asked, const std::string& why);

    const DeviceInfo& device() const override { return info_; }
    bool lost() const override { return device_->lost(); }
    bool has_kernels(const Format& format) const override;
    double row_cost(uint32_t rows) const override;
    uint32_t alike_rows(const BoundPlan& bound) const override {
        return bound.plan.sizing.alike_rows ? kFewAlike : 1;
    }
    Result<std::unique_ptr<WeightStore>> load_stored(std::span<const WeightInfo> weights, ByteSource& source,
                                                     const Progress& progress) override;
    Status refill_stored(WeightStore& store, std::span<const uint32_t> at,
                         std::span<const WeightInfo> weights, ByteSource& source) override {
        const Progress progress;
        return WeightLoader(*device_, *memory_, weights, source, progress)
            .refill(static_cast<VulkanWeights&>(store), at);
    }
    Status prepare(std::span<Executable* const> executables, std::span<const uint32_t> rows) override {
        return VulkanExecutable::prepare(executables, rows, pipelines_);
    }
    Result<std::unique_ptr<CacheStore>> make_caches(std::span<const CacheInfo> caches) override;
    Result<MemoryNeed> measure(std::span<const WeightInfo> weights, std::span<const CacheInfo> caches,
                               std::vector<PlanGroup> groups) override;
    uint64_t allocated() const override { return memory_->allocated(); }
    bool overlaps() const override { return true; }
    uint64_t kernels_hash() const override;
    std::unique_ptr<Kernel> make_kernel(const Op& op, const Plan& plan) override;
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

private:
    Running::Resources with(const WeightStore& weights, const CacheStore& caches, Memory& memory) {
        return {static_cast<const VulkanWeights&>(weights), static_cast<const VulkanCaches&>(caches),
                *device_, memory, pipelines_};
    }

    std::unique_ptr<Device> device_;
    std::unique_ptr<Memory> memory_;
    Pipelines pipelines_;
    std::unique_ptr<KeepBusy> busy_;
    DeviceInfo info_;
    double bandwidth_ = 0.0;
};

Result<std::unique_ptr<VulkanBackend>> open_vulkan_backend(const BackendOptions& options);

}  // namespace redline::vulkan
