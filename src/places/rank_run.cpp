#include "places/rank_run.h"

#include <algorithm>
#include <new>
#include <numeric>

namespace redline {

RankRun::Sums RankRun::sums_of(std::span<const Part> parts) {
    Sums sums;
    for (const Part& part : parts)
        for (const Crossing& slot : part.sums) sums[slot.slot.index];
    return sums;
}

bool RankRun::mixes() const {
    return std::ranges::all_of(parts_, [](const Part& part) { return part.executable->mixes(); });
}

std::span<const float> RankRun::rows_of(const Crossing& slot) {
    return summed_.contains(slot.slot.index) ? sums_->at(slot.slot.index) : kept_[slot.slot.index];
}

std::span<const float> RankRun::input_of(size_t number, size_t rows) {
    const std::vector<Crossing>& takes = parts_[number].takes;
    if (takes.empty()) return {};
    if (takes.size() == 1) return rows_of(takes[0]);
    size_t width = 0, at = 0;
    for (const Crossing& taken : takes) width += taken.width;
    input_.resize(rows * width);
    for (const Crossing& taken : takes) {
        const std::span<const float> from = rows_of(taken);
        for (size_t row = 0; row < rows; ++row)
            std::copy_n(&from[row * taken.width], taken.width, &input_[row * width + at]);
        at += taken.width;
    }
    return input_;
}

// Rows that are added behind the part are read where they are.
void RankRun::keep_output(size_t number, size_t rows) {
    const Part& part = parts_[number];
    const std::span<const float> output = part.executable->output();
    const size_t width = output.size() / rows;
    size_t at = 0;
    for (const Crossing& left : part.leaves) {
        summed_.erase(left.slot.index);
        if (std::ranges::count(part.sums, left) == 0) {
            std::vector<float>& kept = kept_[left.slot.index];
            kept.resize(rows * left.width);
            for (size_t row = 0; row < rows; ++row)
                std::copy_n(&output[row * width + at], left.width, &kept[row * left.width]);
        }
        at += left.width;
    }
}

RankRows RankRun::rows_to_add(size_t number, const Crossing& slot, size_t rows) {
    const Part& part = parts_[number];
    const std::span<const float> output = part.executable->output();
    size_t at = 0;
    for (const Crossing& left : part.leaves) {
        if (left == slot) return {output.data() + at, output.size() / rows};
        at += left.width;
    }
    return {rows_of(slot).data(), slot.width};
}

Status RankRun::run_part(size_t number, const StepParams& params, const RunPart& run) {
    const size_t rows = params.tokens.size();
    StepParams inner = params;
    inner.outputs = all_;
    inner.best = inner.best_among = 0;
    inner.input = input_of(number, rows);
    RL_TRY(run(*parts_[number].executable, inner));
    keep_output(number, rows);
    return {};
}

// The best of a rank are among its outputs.
Status RankRun::run_last(const StepParams& params, const RunPart& run) {
    StepParams last = params;
    if (parts_.size() > 1) last.input = input_of(parts_.size() - 1, params.tokens.size());
    last.best_among = best_among(outputs_, params);
    if (last.best_among < params.best) last.best = last.best_among = 0;
    return run(*parts_.back().executable, last);
}

void RankRun::begin(const StepParams& params) {
    summed_.clear();
    status_ = {};
    gave_up_ = false;
    all_.resize(params.tokens.size());
    std::iota(all_.begin(), all_.end(), 0u);
}

Status guarded(const std::function<Status()>& work) {
    try {
        return work();
    } catch (const std::bad_alloc&) {
        return error("not enough memory to pass activations on");
    }
}

void RankRun::run(size_t rank, const StepParams& params, Reducer& reducer, const RunPart& run) {
    const size_t rows = params.tokens.size();
    for (size_t part = 0; part + 1 < parts_.size(); ++part) {
        status_ = guarded([&] { return run_part(part, params, run); });
        for (const Crossing& slot : parts_[part].sums) {
            const RankRows mine = status_ ? rows_to_add(part, slot, rows) : RankRows();
            if (!reducer.sum(rank, mine, rows, slot.width, sums_->at(slot.slot.index))) {
                gave_up_ = true;
                return;
            }
            took_sum(slot);
        }
    }
    status_ = guarded([&] { return run_last(params, run); });
}

uint32_t best_among(const Run& outputs, const StepParams& params) {
    const uint64_t before = std::min<uint64_t>(outputs.first, params.best_among);
    return uint32_t(std::min<uint64_t>(params.best_among - before, outputs.count));
}

bool divides_output(std::span<const Run> outputs) {
    return std::ranges::any_of(
        outputs, [&](const Run& one) { return one.first > 0 || one.count != outputs[0].count; });
}

// The best outputs of a row of a rank, or all that can be among them.
static void add_best(const RankOutputs& rank, size_t row, const StepParams& params,
                     std::vector<Scored>& all) {
    const auto first = int32_t(rank.of.first);
    const size_t rows = params.outputs.size(), each = rank.best.size() / rows;
    for (const Scored& one : rank.best.subspan(row * each, each)) all.push_back({one.logit, one.id + first});
    if (!rank.best.empty()) return;
    for (uint32_t i = 0; i < best_among(rank.of, params); ++i)
        all.push_back({rank.output[row * (rank.output.size() / rows) + i], int32_t(i) + first});
}

void GatheredOutputs::gather(std::span<const RankOutputs> ranks, const StepParams& params) {
    output.clear();
    best.clear();
    const size_t rows = params.outputs.size();
    std::vector<Scored> all;
    for (size_t row = 0; row < rows && params.best > 0; ++row) {
        all.clear();
        for (const RankOutputs& rank : ranks) add_best(rank, row, params, all);
        const auto wanted = ptrdiff_t(std::min<size_t>(params.best, all.size()));
        std::partial_sort(all.begin(), all.begin() + wanted, all.end(), comes_first);
        best.insert(best.end(), all.begin(), all.begin() + wanted);
    }
    if (params.best > 0) return;
    uint64_t width = 0;
    for (const RankOutputs& rank : ranks) width += rank.of.count;
    output.resize(rows * width);
    for (const RankOutputs& rank : ranks)
        for (size_t row = 0; row < rows; ++row)
            std::copy_n(&rank.output[row * rank.of.count], rank.of.count,
                        &output[row * width + rank.of.first]);
}

}  // namespace redline
