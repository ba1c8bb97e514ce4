// What Places has where a step of many rows has weights of the CPU flow through the device.
#pragma once

#include "places/stream.h"

namespace redline {

class StreamedPlaces {
public:
    // Nothing: no weights can.
    static Result<std::optional<StreamedPlaces>> plan(const Places& places, uint32_t rows, uint32_t outputs,
                                                      bool fuse);

    Backend& device() const { return *device_; }
    const StreamedPlan& streamed() const { return plan_; }
    // The plans of streamed parts, whose weights and caches are the staged ones behind so many others, given.
    Result<PlanGroup> flowing(std::span<const WeightInfo> weights, std::span<const CacheInfo> caches) const;
    // Those of the CPU's that stay there.
    Result<PlanGroup> staying() const;
    // Of which those of the device are in `plain`.
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
    PlanPart of_cpu_;  // one that has all its weights and caches
    std::vector<Placement> placements_;
};

}  // namespace redline
