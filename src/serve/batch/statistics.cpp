#include "serve/batch/statistics.h"

#include <algorithm>

namespace redline::serve {

void Histogram::add(double value) {
    const auto at = std::lower_bound(bounds_.begin(), bounds_.end(), value);
    ++counts_[size_t(at - bounds_.begin())];
    sum_ += value;
    ++count_;
}

void Histogram::add(const Histogram& other) {
    for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
    sum_ += other.sum_;
    count_ += other.count_;
}

void Statistics::add(const Statistics& other) {
    slots.insert(slots.end(), other.slots.begin(), other.slots.end());
    most_drafted = std::max(most_drafted, other.most_drafted);
    most_tokens = std::max(most_tokens, other.most_tokens);
    waiting += other.waiting;
    sequences_kept += other.sequences_kept;
    for (const auto count : {&Statistics::pages,           &Statistics::pages_free,
                             &Statistics::pages_kept,      &Statistics::prompt_tokens,
                             &Statistics::cached_tokens,   &Statistics::generated_tokens,
                             &Statistics::steps,           &Statistics::rows,
                             &Statistics::generating_rows, &Statistics::generating_steps,
                             &Statistics::drafts,          &Statistics::drafted,
                             &Statistics::accepted,        &Statistics::preemptions,
                             &Statistics::losses,          &Statistics::refused,
                             &Statistics::ended_stop,      &Statistics::ended_length,
                             &Statistics::ended_cancelled, &Statistics::ended_error})
        this->*count += other.*count;
    prompt_seconds += other.prompt_seconds;
    generation_seconds += other.generation_seconds;
    accepted_at.resize(std::max(accepted_at.size(), other.accepted_at.size()));
    for (size_t i = 0; i < other.accepted_at.size(); ++i) accepted_at[i] += other.accepted_at[i];
    for (const auto times :
         {&Statistics::first_token, &Statistics::inter_token, &Statistics::whole, &Statistics::queued,
          &Statistics::prompt, &Statistics::generation, &Statistics::step_tokens})
        (this->*times).add(other.*times);
}

void Statistics::count_guess(uint64_t proposed, uint64_t right) {
    ++drafts;
    drafted += proposed;
    accepted += right;
    accepted_at.resize(std::max<size_t>(accepted_at.size(), proposed));
    for (uint64_t i = 0; i < right; ++i) ++accepted_at[i];
}

void Statistics::count_end(StopReason reason) {
    switch (reason) {
        case StopReason::end_of_generation:
        case StopReason::stop_string:
            ++ended_stop;
            break;
        case StopReason::max_tokens:
        case StopReason::context_full:
            ++ended_length;
            break;
        case StopReason::cancelled:
        case StopReason::sink_closed:
            ++ended_cancelled;
            break;
        case StopReason::broken:
            ++ended_error;
            break;
    }
}

uint32_t Statistics::running() const {
    return uint32_t(std::count_if(slots.begin(), slots.end(), [](const SlotState& slot) {
        return slot.doing != SlotState::Doing::idle;
    }));
}

}  // namespace redline::serve
