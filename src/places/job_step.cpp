#include "places/job_step.h"

#include "places/remote_backend.h"

#include <algorithm>

namespace redline {

namespace {

std::vector<RemoteJoin::Crossing> crossings_of(const std::vector<RankRun::Crossing>& all) {
    std::vector<RemoteJoin::Crossing> made;
    for (const RankRun::Crossing& one : all) made.push_back({one.slot, one.width});
    return made;
}

}  // namespace

Result<RemoteRank> RemoteRank::join(const std::shared_ptr<RemoteTeam>& team, uint32_t rank,
                                    const RemoteJoin& how) {
    const auto answer = RL_TRY(team->call(rank, RemoteCall::join, std::move(Packer().add(how))));
    Unpacker in(answer);
    RemoteRank made;
    made.made_ = std::make_unique<Remote>(team, rank, in.next<uint64_t>());
    in.get(made.most_best_, made.mixes_);
    RL_TRY(in.status());
    made.answers_ = how.answers;
    made.outputs_ = {how.first_output, how.outputs};
    return made;
}

void RemoteRank::start(uint64_t number, const StepParams& params) {
    Packer step;
    RemoteStep::of(made_->handle(), number, params).pack(step);
    made_->team().post(made_->rank(), RemoteCall::run_rank, std::move(step));
}

Result<bool> RemoteRank::finish(uint64_t number) {
    rows_ = RL_TRY(made_->team().rows(answers_, number, nullptr));
    return !rows_.gave_up;
}

JobStep::JobStep(RankRun::Sums sums, std::shared_ptr<RemoteTeam> team, uint64_t chain,
                 std::vector<uint32_t> ranks)
    : team_(std::move(team)), sums_(std::move(sums)), reducer_(team_->sums(), chain, std::move(ranks)) {}

Result<std::unique_ptr<JobStep>> JobStep::join(std::vector<Rank> ranks, std::shared_ptr<RemoteTeam> team) {
    RemoteJoin how;
    how.chain = team->new_chain();
    std::vector<Run> outputs;
    for (const Rank& rank : ranks) {
        how.ranks.push_back(rank.rank);
        outputs.push_back(rank.outputs);
    }
    how.sends_output = divides_output(outputs);
    std::unique_ptr<JobStep> made(
        new JobStep(RankRun::sums_of(ranks[0].parts), std::move(team), how.chain, how.ranks));
    made->divides_output_ = how.sends_output;
    for (size_t i = 0; i < ranks.size(); ++i) {
        Rank& rank = ranks[i];
        if (rank.rank == 0) {
            made->place_ = i;
            made->mine_.emplace(std::move(rank.parts), rank.outputs, made->sums_);
            continue;
        }
        how.parts.clear();
        for (const RankRun::Part& part : rank.parts)
            how.parts.push_back({RemoteBackend::handle_of(*part.executable), crossings_of(part.takes),
                                 crossings_of(part.leaves), crossings_of(part.sums)});
        how.answers = made->team_->new_chain();
        how.first_output = rank.outputs.first;
        how.outputs = rank.outputs.count;
        made->others_.push_back(RL_TRY(RemoteRank::join(made->team_, rank.rank, how)));
    }
    RL_CHECK(made->mine_, "rank 0 has no part of a step over {} ranks", ranks.size());
    return made;
}

uint32_t JobStep::most_best() const {
    uint32_t most = mine_->last().most_best();
    if (!divides_output_) return most;
    most = uint32_t(std::min<uint64_t>(most, mine_->outputs().count));
    for (const RemoteRank& other : others_)
        most = uint32_t(std::min<uint64_t>({most, other.most_best(), other.outputs().of.count}));
    return most;
}

bool JobStep::mixes() const {
    return mine_->mixes() && std::ranges::all_of(others_, [](const RemoteRank& one) { return one.mixes(); });
}

Status JobStep::run_traced(const StepParams& params, const TraceSink& sink) {
    return run_with(params,
                    [&](Executable& part, const StepParams& step) { return part.run_traced(step, sink); });
}

// All ranks say how the step went, so that none still works on it when the next one begins. What failed
// counts more than who gave up for it.
Status JobStep::outcome(uint64_t number) {
    Status problem = mine_->status();
    bool all = !mine_->gave_up();
    for (RemoteRank& other : others_) {
        const Result<bool> done = other.finish(number);
        if (!done && problem) problem = done.error();
        all = all && done && done.value();
    }
    RL_TRY(problem);
    if (const std::string lost = team_->problem(); !all && !lost.empty()) return error("{}", lost);
    if (!all) return error("not enough memory to add the rows of {} ranks", others_.size() + 1);
    return {};
}

Status JobStep::run_with(const StepParams& params, const RankRun::RunPart& run) {
    const uint64_t number = ++number_;
    gathered_.output.clear();
    gathered_.best.clear();
    for (RemoteRank& other : others_) other.start(number, params);
    reducer_.begin(number);
    mine_->begin(params);
    mine_->run(place_, params, reducer_, run);
    RL_TRY(outcome(number));
    std::vector<RankOutputs> all;
    for (const RemoteRank& other : others_)
        if (divides_output_) all.push_back(other.outputs());
    all.insert(all.begin() + ptrdiff_t(divides_output_ ? place_ : 0),
               {mine_->outputs(), mine_->last().output(), mine_->last().best()});
    gathered_.gather(all, params);
    return {};
}

}  // namespace redline
