// Steps of a plan that is divided over ranks. Each rank's plan is cut where sums over all ranks are due; the
// ranks run their parts at the same time, and the sums are input of the next ones.
#pragma once

#include "places/pipeline.h"
#include "places/rank_team.h"
#include "places/reducer.h"
#include "plan/rank_link.h"

#include <mutex>

#include <set>

namespace redline {

class RankedStep : public Executable {
public:
    using Crossing = Pipeline::Crossing;
    struct Part {
        std::shared_ptr<Executable> executable;
        std::vector<Crossing> takes, leaves;  // see PlanPart
        std::vector<Crossing> sums;           // over all ranks, behind the part
    };
    struct Rank {
        std::vector<Part> parts;  // as many for each rank
        Run outputs;              // the part of the model's output that it computes
    };
    // With a link the devices add rows by themselves: then ranks have one part.
    RankedStep(std::vector<Rank> ranks, std::shared_ptr<RankTeam> team, std::shared_ptr<RankLink> link = {});

    Status run(const StepParams& params) override;
    // The ranks run one after another; linked ones cannot, and take turns at `sink`.
    Status run_traced(const StepParams& params, const TraceSink& sink) override;
    std::span<const float> output() const override { return output_; }
    uint32_t most_best() const override;
    std::span<const Scored> best() const override { return best_; }
    bool mixes() const override;

private:
    using RunPart = std::function<Status(Executable&, const StepParams&)>;
    // A rank's state within a step: rows that left its parts, by slot, and those of the part that runs.
    struct Local {
        std::map<int32_t, std::vector<float>> kept;
        std::set<int32_t> summed;  // whose rows are those of all ranks
        std::vector<float> input;
        std::vector<uint32_t> all;  // rows of the step
        Status status = {};
        bool gave_up = false;  // since another rank failed
    };

    void run_rank(size_t rank, const StepParams& params);
    Status run_part(size_t rank, size_t part, const StepParams& params, const RunPart& run);
    Status run_last(size_t rank, const StepParams& params, const RunPart& run);
    void begin(const StepParams& params);
    std::span<const float> input_of(size_t rank, size_t part, size_t rows);
    std::span<const float> rows_of(size_t rank, const Crossing& slot);
    void keep_output(size_t rank, size_t part, size_t rows);
    // The rows of a rank that are a part of a sum behind a part.
    RankRows rows_to_add(size_t rank, size_t part, const Crossing& slot, size_t rows);
    Status run_linked(const StepParams& params, const RunPart& run);
    Status first_problem() const;
    Status gather(const StepParams& params);
    // The best outputs of a row of a rank, or all that can be among them.
    void add_best(size_t rank, size_t row, const StepParams& params, std::vector<Scored>& all) const;
    uint32_t best_among(size_t rank, const StepParams& params) const;
    size_t parts() const { return ranks_[0].parts.size(); }

    std::vector<Rank> ranks_;
    std::shared_ptr<RankTeam> team_;
    std::unique_ptr<Reducer> reducer_;
    std::shared_ptr<RankLink> link_;              // null: the reducer adds rows
    std::map<int32_t, std::vector<float>> sums_;  // by slot, for all ranks
    std::vector<Local> locals_;
    bool divides_output_ = false;
    std::vector<float> output_;
    std::vector<Scored> best_;
};

}  // namespace redline
