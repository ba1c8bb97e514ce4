#include "places/ranked_step.h"

#include <algorithm>
#include <mutex>

namespace redline {

// No rank adds an entry to the sums while others look one up.
RankedStep::RankedStep(std::vector<Rank> ranks, std::shared_ptr<RankTeam> team,
                       std::shared_ptr<RankLink> link)
    : sums_(RankRun::sums_of(ranks[0].parts)),
      team_(std::move(team)),
      reducer_(host_reducer(ranks.size())),
      link_(std::move(link)) {
    std::vector<Run> outputs;
    for (Rank& rank : ranks) {
        outputs.push_back(rank.outputs);
        ranks_.emplace_back(std::move(rank.parts), rank.outputs, sums_);
    }
    divides_output_ = divides_output(outputs);
}

uint32_t RankedStep::most_best() const {
    uint32_t most = UINT32_MAX;
    for (const RankRun& rank : ranks_) {
        most = std::min(most, rank.last().most_best());
        if (divides_output_) most = uint32_t(std::min<uint64_t>(most, rank.outputs().count));
    }
    return most;
}

bool RankedStep::mixes() const {
    return std::ranges::all_of(ranks_, [](const RankRun& rank) { return rank.mixes(); });
}

void RankedStep::begin(const StepParams& params) {
    reducer_->begin();
    gathered_.output.clear();
    gathered_.best.clear();
    for (RankRun& rank : ranks_) rank.begin(params);
}

Status RankedStep::first_problem() const {
    for (const RankRun& rank : ranks_)
        if (!rank.status()) return rank.status();
    return {};
}

Status RankedStep::run_linked(const StepParams& params, const RunPart& run) {
    RL_TRY(link_->begin());
    team_->run([&](size_t rank) {
        ranks_[rank].set_status(guarded([&] { return ranks_[rank].run_last(params, run); }));
        if (!ranks_[rank].status()) link_->give_up();
    });
    RL_TRY(first_problem());
    RL_TRY(link_->waited());
    return gather(params);
}

Status RankedStep::run(const StepParams& params) {
    begin(params);
    if (link_) return run_linked(params, RankRun::run_plainly);
    team_->run([&](size_t rank) { ranks_[rank].run(rank, params, *reducer_); });
    RL_TRY(first_problem());
    if (ranks_[0].gave_up()) return error("not enough memory to add the rows of {} devices", ranks_.size());
    return gather(params);
}

Status RankedStep::run_traced(const StepParams& params, const TraceSink& sink) {
    begin(params);
    std::mutex turn;
    if (link_)
        return run_linked(params, [&](Executable& part, const StepParams& step) {
            return part.run_traced(step, [&](const TraceStep& traced) {
                const std::lock_guard lock(turn);
                sink(traced);
            });
        });
    const size_t rows = params.tokens.size();
    const RunPart run = [&](Executable& part, const StepParams& step) { return part.run_traced(step, sink); };
    const std::vector<Part>& parts = ranks_[0].parts();
    for (size_t part = 0; part + 1 < parts.size(); ++part) {
        for (RankRun& rank : ranks_) RL_TRY(rank.run_part(part, params, run));
        for (const Crossing& slot : parts[part].sums) {
            std::vector<RankRows> all;
            for (RankRun& rank : ranks_) all.push_back(rank.rows_to_add(part, slot, rows));
            std::vector<float>& into = sums_.at(slot.slot.index);
            into.resize(rows * slot.width);
            add_rows(all, slot.width, 0, into.size(), into);
            for (RankRun& rank : ranks_) rank.took_sum(slot);
        }
    }
    for (RankRun& rank : ranks_) RL_TRY(rank.run_last(params, run));
    return gather(params);
}

Status RankedStep::gather(const StepParams& params) {
    std::vector<RankOutputs> all;
    for (const RankRun& rank : std::span(ranks_).first(divides_output_ ? ranks_.size() : 1))
        all.push_back({rank.outputs(), rank.last().output(), rank.last().best()});
    gathered_.gather(all, params);
    return {};
}

}  // namespace redline
