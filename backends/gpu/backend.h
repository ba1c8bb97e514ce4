// What both GPU backends are: a device, its memory, weights and caches there, and kernels that come from one
// of several makers.
//
// A backend Self derives from DeviceBackend<Self, GpuExecutable, Gpu>, and has with(weights, caches, memory):
// what a plan is recorded with. Beside what StepExecutable asks for, its struct Gpu says:
//   kMakers: functions that make kernels
//   reads(device, cache): whether kernels read such a cache
//   Loading::stages(memory): whether loading uses memory of the host besides
#pragma once

#include "backends/gpu/loader.h"
#include "plan/alike_rows.h"
#include "plan/backend_parts.h"
#include "plan/passes/cut.h"
#include "plan/row_costs.h"

namespace redline::gpu {

template <class Self, class GpuExecutable, class Gpu>
class DeviceBackend : public Backend,
                      public EmbeddedKernels,
                      public RefillsWeights,
                      public AlikeRows,
                      public RowCosts {
public:
    using Device = typename Gpu::Device;
    using Memory = typename Gpu::Memory;
    using Loader = WeightLoader<typename Gpu::Loading>;

    const DeviceInfo& device() const override { return info_; }
    bool lost() const override { return device_->lost(); }
    uint64_t allocated() const override { return memory_->allocated(); }
    uint32_t alike_rows(const BoundPlan& bound) const override {
        return bound.plan.sizing.alike_rows ? kFewAlike : 1;
    }

    Result<std::unique_ptr<WeightStore>> load_stored(std::span<const WeightInfo> weights, ByteSource& source,
                                                     const Progress& progress) override {
        return Loader(*device_, *memory_, weights, source, progress).run();
    }
    Status refill_stored(WeightStore& store, std::span<const uint32_t> at,
                         std::span<const WeightInfo> weights, ByteSource& source) override {
        const Progress progress;
        return Loader(*device_, *memory_, weights, source, progress)
            .refill(static_cast<typename Gpu::Weights&>(store), at);
    }
    Result<std::unique_ptr<CacheStore>> make_caches(std::span<const CacheInfo> caches) override {
        return Gpu::Caches::create(*device_, *memory_, caches);
    }

    Result<MemoryNeed> measure(std::span<const WeightInfo> weights, std::span<const CacheInfo> caches,
                               std::vector<PlanGroup> groups) override {
        const std::unique_ptr<Memory> counting = Memory::counting(*memory_);
        const auto placed = RL_TRY(place_weights<typename Gpu::Loading>(*device_, *counting, weights));
        MemoryNeed need;
        need.weights = counting->allocated();
        const auto store = RL_TRY(Gpu::Caches::create(*device_, *counting, caches));
        need.cache = counting->allocated() - need.weights;
        for (PlanGroup& group : groups)
            RL_TRY(GpuExecutable::make(std::move(group), self().with(*placed, *store, *counting),
                                       Record::direct));
        need.scratch = counting->allocated() - need.weights - need.cache;
        need.staging = Gpu::Loading::stages(*counting) ? staging_bytes() : 0;
        return need;
    }

    std::unique_ptr<Kernel> make_kernel(const Op& op, const Plan& plan) override {
        for (const Cache cache : caches_of(op))
            if (!Gpu::reads(*device_, plan.cache(cache))) return nullptr;
        for (const auto make : Gpu::kMakers)
            if (std::unique_ptr<Kernel> kernel = make(op, plan, *device_)) return kernel;
        return nullptr;
    }
    Result<std::vector<std::unique_ptr<Executable>>> record_group(PlanGroup plans, WeightStore& weights,
                                                                  CacheStore& caches, Record mode) override {
        return GpuExecutable::create_group(std::move(plans), self().with(weights, caches, *memory_), mode);
    }

protected:
    DeviceBackend(std::unique_ptr<Device> device, std::unique_ptr<Memory> memory)
        : device_(std::move(device)), memory_(std::move(memory)) {}

    std::unique_ptr<Device> device_;
    std::unique_ptr<Memory> memory_;
    DeviceInfo info_;
    double bandwidth_ = 0.0;  // measured

private:
    Self& self() { return static_cast<Self&>(*this); }
};

}  // namespace redline::gpu
