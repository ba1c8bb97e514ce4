#include "places/ranked_step.h"

#include <algorithm>
#include <new>
#include <numeric>

namespace redline {

RankedStep::RankedStep(std::vector<Rank> ranks, std::shared_ptr<RankTeam> team,
                       std::shared_ptr<RankLink> link)
    : ranks_(std::move(ranks)),
      team_(std::move(team)),
      reducer_(host_reducer(ranks_.size())),
      link_(std::move(link)),
      locals_(ranks_.size()) {
    // No rank adds an entry while others look one up.
    for (const Part& part : ranks_[0].parts)
        for (const Crossing& slot : part.sums) sums_[slot.slot.index];
    for (const Rank& rank : ranks_)
        divides_output_ |= rank.outputs.first > 0 || rank.outputs.count != ranks_[0].outputs.count;
}

uint32_t RankedStep::most_best() const {
    uint32_t most = UINT32_MAX;
    for (const Rank& rank : ranks_) {
        most = std::min(most, rank.parts.back().executable->most_best());
        if (divides_output_) most = uint32_t(std::min<uint64_t>(most, rank.outputs.count));
    }
    return most;
}

bool RankedStep::mixes() const {
    const auto can = [](const Part& part) { return part.executable->mixes(); };
    return std::ranges::all_of(ranks_,
                               [&](const Rank& rank) { return std::ranges::all_of(rank.parts, can); });
}

std::span<const float> RankedStep::rows_of(size_t rank, const Crossing& slot) {
    Local& local = locals_[rank];
    return local.summed.contains(slot.slot.index) ? sums_.at(slot.slot.index) : local.kept[slot.slot.index];
}

std::span<const float> RankedStep::input_of(size_t rank, size_t part, size_t rows) {
    const std::vector<Crossing>& takes = ranks_[rank].parts[part].takes;
    if (takes.empty()) return {};
    if (takes.size() == 1) return rows_of(rank, takes[0]);
    size_t width = 0, at = 0;
    for (const Crossing& taken : takes) width += taken.width;
    std::vector<float>& input = locals_[rank].input;
    input.resize(rows * width);
    for (const Crossing& taken : takes) {
        const std::span<const float> from = rows_of(rank, taken);
        for (size_t row = 0; row < rows; ++row)
            std::copy_n(&from[row * taken.width], taken.width, &input[row * width + at]);
        at += taken.width;
    }
    return input;
}

// Rows that are added behind the part are read where they are.
void RankedStep::keep_output(size_t rank, size_t number, size_t rows) {
    const Part& part = ranks_[rank].parts[number];
    Local& local = locals_[rank];
    const std::span<const float> output = part.executable->output();
    const size_t width = output.size() / rows;
    size_t at = 0;
    for (const Crossing& left : part.leaves) {
        local.summed.erase(left.slot.index);
        if (std::ranges::count(part.sums, left) == 0) {
            std::vector<float>& kept = local.kept[left.slot.index];
            kept.resize(rows * left.width);
            for (size_t row = 0; row < rows; ++row)
                std::copy_n(&output[row * width + at], left.width, &kept[row * left.width]);
        }
        at += left.width;
    }
}

RankRows RankedStep::rows_to_add(size_t rank, size_t number, const Crossing& slot, size_t rows) {
    const Part& part = ranks_[rank].parts[number];
    const std::span<const float> output = part.executable->output();
    size_t at = 0;
    for (const Crossing& left : part.leaves) {
        if (left == slot) return {output.data() + at, output.size() / rows};
        at += left.width;
    }
    return {rows_of(rank, slot).data(), slot.width};
}

Status RankedStep::run_part(size_t rank, size_t number, const StepParams& params, const RunPart& run) {
    Local& local = locals_[rank];
    const size_t rows = params.tokens.size();
    StepParams inner = params;
    inner.outputs = local.all;
    inner.best = inner.best_among = 0;
    inner.input = input_of(rank, number, rows);
    RL_TRY(run(*ranks_[rank].parts[number].executable, inner));
    keep_output(rank, number, rows);
    return {};
}

// The best of a rank are among its outputs.
Status RankedStep::run_last(size_t rank, const StepParams& params, const RunPart& run) {
    StepParams last = params;
    if (parts() > 1) last.input = input_of(rank, parts() - 1, params.tokens.size());
    last.best_among = best_among(rank, params);
    if (last.best_among < params.best) last.best = last.best_among = 0;
    return run(*ranks_[rank].parts.back().executable, last);
}

uint32_t RankedStep::best_among(size_t rank, const StepParams& params) const {
    const Run& outputs = ranks_[rank].outputs;
    const uint64_t before = std::min<uint64_t>(outputs.first, params.best_among);
    return uint32_t(std::min<uint64_t>(params.best_among - before, outputs.count));
}

void RankedStep::begin(const StepParams& params) {
    reducer_->begin();
    output_.clear();
    best_.clear();
    for (Local& local : locals_) {
        local.summed.clear();
        local.status = {};
        local.gave_up = false;
        local.all.resize(params.tokens.size());
        std::iota(local.all.begin(), local.all.end(), 0u);
    }
}

// An exception that left a rank's thread would end the program.
static Status guarded(const std::function<Status()>& work) {
    try {
        return work();
    } catch (const std::bad_alloc&) {
        return error("not enough memory to pass activations on");
    }
}

void RankedStep::run_rank(size_t rank, const StepParams& params) {
    Local& local = locals_[rank];
    const size_t rows = params.tokens.size();
    const RunPart run = [](Executable& part, const StepParams& step) { return part.run(step); };
    for (size_t part = 0; part + 1 < parts(); ++part) {
        local.status = guarded([&] { return run_part(rank, part, params, run); });
        for (const Crossing& slot : ranks_[rank].parts[part].sums) {
            const RankRows mine = local.status ? rows_to_add(rank, part, slot, rows) : RankRows();
            if (!reducer_->sum(rank, mine, rows, slot.width, sums_.at(slot.slot.index))) {
                local.gave_up = true;
                return;
            }
            local.summed.insert(slot.slot.index);
        }
    }
    local.status = guarded([&] { return run_last(rank, params, run); });
}

Status RankedStep::first_problem() const {
    for (const Local& local : locals_)
        if (!local.status) return local.status;
    return {};
}

Status RankedStep::run_linked(const StepParams& params, const RunPart& run) {
    RL_TRY(link_->begin());
    team_->run([&](size_t rank) {
        locals_[rank].status = guarded([&] { return run_last(rank, params, run); });
        if (!locals_[rank].status) link_->give_up();
    });
    RL_TRY(first_problem());
    RL_TRY(link_->waited());
    return gather(params);
}

Status RankedStep::run(const StepParams& params) {
    begin(params);
    if (link_)
        return run_linked(params, [](Executable& part, const StepParams& step) { return part.run(step); });
    team_->run([&](size_t rank) { run_rank(rank, params); });
    RL_TRY(first_problem());
    if (locals_[0].gave_up) return error("not enough memory to add the rows of {} devices", ranks_.size());
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
    for (size_t part = 0; part + 1 < parts(); ++part) {
        for (size_t rank = 0; rank < ranks_.size(); ++rank) RL_TRY(run_part(rank, part, params, run));
        for (const Crossing& slot : ranks_[0].parts[part].sums) {
            std::vector<RankRows> all;
            for (size_t rank = 0; rank < ranks_.size(); ++rank)
                all.push_back(rows_to_add(rank, part, slot, rows));
            std::vector<float>& into = sums_.at(slot.slot.index);
            into.resize(rows * slot.width);
            add_rows(all, slot.width, 0, into.size(), into);
            for (Local& local : locals_) local.summed.insert(slot.slot.index);
        }
    }
    for (size_t rank = 0; rank < ranks_.size(); ++rank) RL_TRY(run_last(rank, params, run));
    return gather(params);
}

void RankedStep::add_best(size_t rank, size_t row, const StepParams& params, std::vector<Scored>& all) const {
    const Executable& executable = *ranks_[rank].parts.back().executable;
    const auto first = int32_t(ranks_[rank].outputs.first);
    const size_t rows = params.outputs.size();
    const std::span<const Scored> best = executable.best();
    for (const Scored& one : best.subspan(row * (best.size() / rows), best.size() / rows))
        all.push_back({one.logit, one.id + first});
    if (!best.empty()) return;
    const std::span<const float> logits = executable.output();
    for (uint32_t i = 0; i < best_among(rank, params); ++i)
        all.push_back({logits[row * (logits.size() / rows) + i], int32_t(i) + first});
}

// Puts the outputs of the ranks side by side, or finds the best of theirs.
Status RankedStep::gather(const StepParams& params) {
    const size_t rows = params.outputs.size(), ranks = divides_output_ ? ranks_.size() : 1;
    std::vector<Scored> all;
    for (size_t row = 0; row < rows && params.best > 0; ++row) {
        all.clear();
        for (size_t rank = 0; rank < ranks; ++rank) add_best(rank, row, params, all);
        const auto wanted = ptrdiff_t(std::min<size_t>(params.best, all.size()));
        std::partial_sort(all.begin(), all.begin() + wanted, all.end(), comes_first);
        best_.insert(best_.end(), all.begin(), all.begin() + wanted);
    }
    if (params.best > 0) return {};
    uint64_t width = 0;
    for (size_t rank = 0; rank < ranks; ++rank) width += ranks_[rank].outputs.count;
    output_.resize(rows * width);
    for (size_t rank = 0; rank < ranks; ++rank) {
        const Run& outputs = ranks_[rank].outputs;
        const std::span<const float> logits = ranks_[rank].parts.back().executable->output();
        for (size_t row = 0; row < rows; ++row)
            std::copy_n(&logits[row * outputs.count], outputs.count, &output_[row * width + outputs.first]);
    }
    return {};
}

}  // namespace redline
