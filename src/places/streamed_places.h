// Streamed prefill: plans for CPU layers whose weights are copied to the GPU step by step.
#pragma once

#include "places/stream.h"

namespace redline {

class StreamedPlaces {
public:
    // Empty when no weights can be streamed.
    static Result<std::optional<StreamedPlaces>> plan(const Places& places, uint32_t rows, uint32_t outputs,
                                                      bool fuse);

    Backend& device() const { return *device_; }
    const StreamedPlan& streamed() const { return plan_; }
    // Plans of the streamed parts; their weights and caches are numbered behind the given ones.
    Result<PlanGroup> flowing(std::span<const WeightInfo> weights, std::span<const CacheInfo> caches) const;
    // Plans of the parts that stay on the CPU.
    Result<PlanGroup> staying() const;
    // `plain` has the executables of the parts that the device computes anyway; they are shared.
    Result<std::unique_ptr<Pipeline>> record(Places& places, const std::vector<Pipeline::Part>& plain,
                                             Record mode, std::shared_ptr<StreamWatch> watch) const;

private:
    StreamedPlaces(StreamedPlan plan) : plan_(std::move(plan)) {}
    std::vector<StreamedPart::Home> homes(const StreamedPlan::Part& part, CacheStore& store) const;

    StreamedPlan plan_;
    bool fuse_ = true;
    Backend* device_ = nullptr;
    Backend* cpu_ = nullptr;
    size_t device_place_ = 0, cpu_place_ = 0;
    PlanPart of_cpu_;  // a part of the CPU's place, which lists all of that place's weights and caches
    std::vector<Placement> placements_;
};

}  // namespace redline
