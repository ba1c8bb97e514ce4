// Steps of a plan that is divided over the ranks of this process: they run their parts at the same time, in
// threads.
#pragma once

#include "places/rank_run.h"
#include "places/rank_team.h"
#include "plan/rank_link.h"

namespace redline {

class RankedStep : public Executable {
public:
    using Crossing = RankRun::Crossing;
    using Part = RankRun::Part;
    struct Rank {
        std::vector<Part> parts;  // as many for each rank
        Run outputs;              // the part of the model's output that it computes
    };
    // With a link the devices add rows by themselves: then ranks have one part.
    RankedStep(std::vector<Rank> ranks, std::shared_ptr<RankTeam> team, std::shared_ptr<RankLink> link = {});

    Status run(const StepParams& params) override;
    // The ranks run one after another; linked ones cannot, and take turns at `sink`.
    Status run_traced(const StepParams& params, const TraceSink& sink) override;
    std::span<const float> output() const override { return gathered_.output; }
    uint32_t most_best() const override;
    std::span<const Scored> best() const override { return gathered_.best; }
    bool mixes() const override;

private:
    using RunPart = RankRun::RunPart;

    void begin(const StepParams& params);
    Status run_linked(const StepParams& params, const RunPart& run);
    Status first_problem() const;
    Status gather(const StepParams& params);

    RankRun::Sums sums_;
    std::vector<RankRun> ranks_;
    std::shared_ptr<RankTeam> team_;
    std::unique_ptr<Reducer> reducer_;
    std::shared_ptr<RankLink> link_;  // null: the reducer adds rows
    bool divides_output_ = false;
    GatheredOutputs gathered_;
};

}  // namespace redline
