// Steps of a plan that is divided over ranks of a job, as rank 0 runs them: all ranks get the step, and each
// adds its rows to those of the others.
#pragma once

#include "places/rank_run.h"
#include "places/remote_handle.h"

namespace redline {

// A rank's way through the parts of its plan, at that rank.
class RemoteRank {
public:
    // The parts have been recorded there.
    static Result<RemoteRank> join(const std::shared_ptr<RemoteTeam>& team, uint32_t rank,
                                   const RemoteJoin& how);

    void start(uint64_t number, const StepParams& params);
    // Waits for the outputs. A problem that is another rank's is no error here: then the result is false.
    Result<bool> finish(uint64_t number);
    RankOutputs outputs() const { return {outputs_, rows_.output, rows_.best}; }
    uint32_t most_best() const { return most_best_; }
    bool mixes() const { return mixes_; }

private:
    std::unique_ptr<Remote> made_;
    uint64_t answers_ = 0;  // the chain of its rows
    Run outputs_;
    uint32_t most_best_ = 0;
    bool mixes_ = false;
    RemoteRows rows_;
};

class JobStep : public Executable {
public:
    struct Rank {
        std::vector<RankRun::Part> parts;  // as many for each rank
        Run outputs;                       // the part of the model's output that it computes
        uint32_t rank = 0;                 // in the job
    };
    // The executables of rank 0 are of this process, those of others of RemoteBackends. The order is that in
    // which rows are added.
    static Result<std::unique_ptr<JobStep>> join(std::vector<Rank> ranks, std::shared_ptr<RemoteTeam> team);

    Status run(const StepParams& params) override { return run_with(params, RankRun::run_plainly); }
    // Steps of other ranks' ops are not timed from here.
    Status run_traced(const StepParams& params, const TraceSink& sink) override;
    std::span<const float> output() const override { return gathered_.output; }
    uint32_t most_best() const override;
    std::span<const Scored> best() const override { return gathered_.best; }
    bool mixes() const override;

private:
    JobStep(RankRun::Sums sums, std::shared_ptr<RemoteTeam> team, uint64_t chain,
            std::vector<uint32_t> ranks);
    Status run_with(const StepParams& params, const RankRun::RunPart& run);
    Status outcome(uint64_t number);

    std::shared_ptr<RemoteTeam> team_;
    std::vector<RemoteRank> others_;  // in their order
    RankRun::Sums sums_;
    WireReducer reducer_;
    std::optional<RankRun> mine_;
    size_t place_ = 0;  // of this rank in the order
    uint64_t number_ = 0;
    bool divides_output_ = false;
    GatheredOutputs gathered_;
};

}  // namespace redline
