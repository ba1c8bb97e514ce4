#include "serve/batch/loop.h"

#include <algorithm>

namespace redline::serve {

namespace {

// How often a scheduler without a device looks for requests that were cancelled.
constexpr std::chrono::milliseconds kLook(200);
// Pauses between tries to open a lost device again, which double up to the longest.
constexpr std::chrono::seconds kFirstPause(5), kLongestPause(60);

}  // namespace

void Scheduler::Loop::run() {
    while (wait_for_work()) {
        take_submitted();
        end_cancelled();
        if (loss_) try_reopen();
        if (!loss_) {
            admit();
            iterate();
        }
        publish();
    }
    end_all(StopReason::cancelled);
    store_all();
    kept_->clear();
    publish();
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    ended_.notify_all();
}

// False when the thread is to end.
bool Scheduler::Loop::wait_for_work() {
    std::unique_lock lock(mutex_);
    const auto idle = [this] { return submitted_.empty() && waiting_.empty() && running_.empty(); };
    if (loss_)
        wake_.wait_until(lock, std::min(next_try_, Clock::now() + kLook), [this] { return draining_; });
    else
        wake_.wait(lock, [&] { return draining_ || !idle(); });
    return !draining_ || (!idle() && !loss_ && Clock::now() < deadline_);
}

void Scheduler::Loop::take_submitted() {
    const std::lock_guard lock(mutex_);
    while (!submitted_.empty()) {
        waiting_.push_back(std::move(submitted_.front()));
        submitted_.pop_front();
    }
}

std::unique_ptr<Request> Scheduler::Loop::take_waiting(Waiting::iterator at) {
    std::unique_ptr<Request> request = std::move(*at);
    waiting_.erase(at);
    const std::lock_guard lock(mutex_);
    --unstarted_;
    return request;
}

void Scheduler::Loop::end_waiting(StopReason reason, const std::function<bool(Request&)>& which) {
    for (size_t i = 0; i < waiting_.size();) {
        if (!which(*waiting_[i])) {
            ++i;
            continue;
        }
        end(take_waiting(waiting_.begin() + ptrdiff_t(i)), reason);
    }
}

void Scheduler::Loop::end_cancelled() {
    const auto cancelled = [](const Request& request) { return request.cancelled(); };
    end_waiting(StopReason::cancelled, cancelled);
    for (size_t i = running_.size(); i > 0; --i)
        if (running_[i - 1]->cancelled()) leave(*running_[i - 1], StopReason::cancelled);
}

void Scheduler::Loop::end_all(StopReason reason) {
    take_submitted();
    end_waiting(reason, [](const Request&) { return true; });
    while (!running_.empty()) leave(*running_.back(), reason);
}

// Ends a request that runs. Its sequence stays for those that begin alike.
void Scheduler::Loop::leave(Request& request, StopReason reason) {
    const auto at = std::find_if(running_.begin(), running_.end(),
                                 [&](const auto& running) { return running.get() == &request; });
    std::unique_ptr<Request> ended = std::move(*at);
    running_.erase(at);
    counted_.slots[ended->slot] = {};
    if (ended->sequence && ended->cached() && reason != StopReason::broken)
        kept_->add(std::move(*ended->sequence));
    release(*ended);
    ended->sequence.reset();
    end(std::move(ended), reason);
}

// Whoever hears of the end finds it counted.
void Scheduler::Loop::end(std::unique_ptr<Request> request, StopReason reason) {
    AnswerEnd ended = request->close(reason, counted_);
    publish();
    {
        const std::lock_guard lock(mutex_);
        --unfinished_;
    }
    request->send(std::move(ended));
}

void Scheduler::Loop::publish() {
    for (const auto& request : running_) {
        const bool reads = request->generated_tokens() == 0 || !request->generates();
        counted_.slots[request->slot] = {reads ? SlotState::Doing::reading : SlotState::Doing::generating,
                                         request->number,
                                         request->prompt_tokens(),
                                         request->position(),
                                         request->generated_tokens(),
                                         request->cost().drafted,
                                         request->cost().accepted};
    }
    const Engine::PageCount pages = count_pages();
    counted_.pages = pages.all;
    counted_.page_tokens = kPageRows;
    counted_.pages_free = pages.free;
    counted_.pages_kept = kept_pages();
    counted_.sequences_kept = uint32_t(kept_->size());
    if (options_.held) options_.held->flush();
    const std::lock_guard lock(mutex_);
    published_ = counted_;
}

Engine::PageCount Scheduler::Loop::count_pages() const {
    Engine::PageCount pages = engine_->pages();
    if (padding_ && pages.all > 0) --pages.all;
    return pages;
}

// Ends what runs. What waits is served once the device is there again.
void Scheduler::Loop::lose(const Error& loss) {
    {
        const std::lock_guard lock(mutex_);
        lost_ = true;
    }
    loss_ = loss;
    next_try_ = Clock::now();
    pause_ = kFirstPause;
    ++counted_.losses;
    for (const auto& request : running_) request->fail(loss, true);
    while (!running_.empty()) leave(*running_.back(), StopReason::broken);
    kept_->clear();
    publish();
}

void Scheduler::Loop::try_reopen() {
    if (Clock::now() < next_try_) return;
    const auto opened = [this]() -> Status {
        RL_TRY(rescue_.may_open(*loss_));
        engine_->close();
        RL_TRY(rescue_.open_again(0, *loss_));
        return rescue_.reopen(*engine_, *loss_);
    }();
    if (opened) {
        loss_.reset();
        const std::lock_guard lock(mutex_);
        lost_ = false;
        return;
    }
    next_try_ = Clock::now() + pause_;
    pause_ = std::min(2 * pause_, kLongestPause);
    take_submitted();
    end_waiting(StopReason::broken, [&](Request& request) {
        request.fail(opened.error(), true);
        return true;
    });
}

}  // namespace redline::serve
