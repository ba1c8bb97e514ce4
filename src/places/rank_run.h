// A rank's way through a step: its plan is cut where sums over all ranks are due, and the sums are input of
// the parts that follow.
#pragma once

#include "places/pipeline.h"
#include "places/reducer.h"

#include <set>

namespace redline {

class RankRun {
public:
    using Crossing = Pipeline::Crossing;
    struct Part {
        std::shared_ptr<Executable> executable;
        std::vector<Crossing> takes, leaves;  // see PlanPart
        std::vector<Crossing> sums;           // over all ranks, behind the part
    };
    using RunPart = std::function<Status(Executable&, const StepParams&)>;
    // By slot; ranks of one process have the same.
    using Sums = std::map<int32_t, std::vector<float>>;
    static Sums sums_of(std::span<const Part> parts);

    // `outputs`: the part of the model's output that the rank computes. `sums` outlives this.
    RankRun(std::vector<Part> parts, Run outputs, Sums& sums)
        : parts_(std::move(parts)), outputs_(outputs), sums_(&sums) {}

    const std::vector<Part>& parts() const { return parts_; }
    const Run& outputs() const { return outputs_; }
    Executable& last() const { return *parts_.back().executable; }
    bool mixes() const;

    void begin(const StepParams& params);
    // All parts, with the rows that other ranks add; status() has the outcome.
    void run(size_t rank, const StepParams& params, Reducer& reducer, const RunPart& run = run_plainly);
    static Status run_plainly(Executable& part, const StepParams& params) { return part.run(params); }
    // A single part, when the reducer is not in use: then add_rows() makes the sums.
    Status run_part(size_t number, const StepParams& params, const RunPart& run);
    Status run_last(const StepParams& params, const RunPart& run);
    // The rows of this rank that are a part of a sum behind a part.
    RankRows rows_to_add(size_t number, const Crossing& slot, size_t rows);
    void took_sum(const Crossing& slot) { summed_.insert(slot.slot.index); }
    void set_status(Status status) { status_ = std::move(status); }

    const Status& status() const { return status_; }
    bool gave_up() const { return gave_up_; }

private:
    std::span<const float> rows_of(const Crossing& slot);
    std::span<const float> input_of(size_t number, size_t rows);
    void keep_output(size_t number, size_t rows);

    std::vector<Part> parts_;
    Run outputs_;
    Sums* sums_;
    // Within a step: rows that left the parts, by slot, and those of the part that runs.
    std::map<int32_t, std::vector<float>> kept_;
    std::set<int32_t> summed_;  // whose rows are those of all ranks
    std::vector<float> input_;
    std::vector<uint32_t> all_;  // rows of the step
    Status status_ = {};
    bool gave_up_ = false;  // since another rank failed
};

// An exception that left a rank's thread would end the program.
Status guarded(const std::function<Status()>& work);

// How many of a rank's outputs can be among the best of the first StepParams::best_among.
uint32_t best_among(const Run& outputs, const StepParams& params);

// The outputs of a rank in a step: all of them, or the best.
struct RankOutputs {
    Run of;
    std::span<const float> output = {};
    std::span<const Scored> best = {};
};
// The outputs of the ranks side by side, or the best of theirs.
struct GatheredOutputs {
    std::vector<float> output;
    std::vector<Scored> best;

    void gather(std::span<const RankOutputs> ranks, const StepParams& params);
};
// True where each rank has a part of the output, and not all of it.
bool divides_output(std::span<const Run> outputs);

}  // namespace redline
