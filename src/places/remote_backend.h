// A device of another rank as a backend of this one: what is made on it is made by calls there, and the rows
// of steps go from rank to rank.
#pragma once

#include "places/remote_team.h"
#include "plan/far_backend.h"

namespace redline {

class RemoteBackend : public Backend, public FarBackend {
public:
    // The device with this number of those that the rank said hello with.
    RemoteBackend(std::shared_ptr<RemoteTeam> team, uint32_t rank, uint32_t number,
                  const RemoteDevice& device);

    uint32_t rank() const { return rank_; }

    const DeviceInfo& device() const override { return device_.info; }
    bool lost() const override { return team_->lost_device(rank_); }
    bool has_kernels(const Format& format) const override;
    Result<std::unique_ptr<CacheStore>> make_caches(std::span<const CacheInfo> caches) override;
    Result<MemoryNeed> measure(std::span<const WeightInfo> weights, std::span<const CacheInfo> caches,
                               std::vector<PlanGroup> groups) override;
    uint64_t allocated() const override;
    Result<std::vector<std::unique_ptr<Executable>>> record_group(PlanGroup plans, WeightStore& weights,
                                                                  CacheStore& caches, Record mode) override;
    double measure_read_bandwidth() override;
    Result<BoundPlan> lower_there(const Plan& plan, bool fuse) override;
    Result<std::unique_ptr<WeightStore>> load_there(std::span<const WeightSlice> slices,
                                                    std::span<const WeightInfo> infos) override;
    const std::shared_ptr<RemoteTeam>& team() const { return team_; }
    // The number of an executable of such a backend at its rank.
    static uint64_t handle_of(const Executable& executable);

private:
    std::unique_ptr<Kernel> make_kernel(const Op& op, const Plan& plan) override;
    Result<std::unique_ptr<WeightStore>> load_stored(std::span<const WeightInfo> weights, ByteSource& source,
                                                     const Progress& progress) override;
    Packer to_device() const { return std::move(Packer().add(number_)); }

    std::shared_ptr<RemoteTeam> team_;
    uint32_t rank_, number_;
    RemoteDevice device_;
    std::optional<uint64_t> loading_;  // a call that goes on
};

}  // namespace redline
