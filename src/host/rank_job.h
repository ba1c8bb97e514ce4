// A model that is divided over the processes of a job, its ranks: rank 0 has the engine and the last layers,
// the others compute the layers before them, each on the devices that it opens. Or each computes a part of
// every layer.
#pragma once

#include "host/loaded_model.h"
#include "places/rank_worker.h"
#include "places/remote_backend.h"

namespace redline {

// The other ranks, as rank 0 knows them.
class RankJob {
public:
    explicit RankJob(std::shared_ptr<RemoteTeam> team) : team_(std::move(team)) {}

    RemoteTeam& team() const { return *team_; }
    // The devices of all other ranks, in their order. Waits for them to say what they have.
    Result<std::vector<OpenDevice>> devices();
    // An error where a rank has another program, file or options: one line that names the rank.
    Status check_same(const Model& model, const HostOptions& options);
    Result<std::unique_ptr<Backend>> open(const OpenDevice& device) const;
    // Has the rank check and time its kernels, as this one does before a session of so many tokens.
    // `ranks`: those that divide each layer; empty: the rank has whole ones.
    Status prepare(const OpenDevice& device, const HostOptions& options, uint64_t context, uint32_t outputs,
                   std::span<const RankPlace> ranks);
    // The rank measures, or knows, how fast its device is; `anew`: it measures.
    void measure(OpenDevice& device, bool anew);
    // Seconds that a row of activations takes from one device to the other's rank; 0: not known.
    double hop_seconds(const OpenDevice& from, const OpenDevice& to, uint64_t bytes);
    // One line for each rank: its layers and its device.
    std::vector<std::string> plan_lines(const LoadedModel& loaded) const;

private:
    Result<std::vector<std::byte>> ask(const OpenDevice& device, Packer arguments) const;

    std::shared_ptr<RemoteTeam> team_;
    std::vector<RemoteHello> hellos_;  // of ranks from 1 on; empty until they came
};

// The first and the last layer, counted from 0, of the steps of a device; nothing where it has none.
struct LayerRange {
    uint32_t first = 0, last = 0;
};
std::optional<LayerRange> layers_of(const LoadedModel& loaded, const OpenDevice& device);

// On another rank: opens the device that the options name, and computes until rank 0 ends the job.
Status serve_rank(RankWorker& worker, const HostOptions& options);

}  // namespace redline
