// The choice of waiting requests that start, and with which tokens in their caches already.
#include "serve/batch/loop.h"

#include <algorithm>

namespace redline::serve {

namespace {

// A request waits for another that reads the same beginning, if that saves it so many tokens.
constexpr uint64_t kWorthWaiting = 64;
// A part of a prompt is kept where it saves so many tokens.
constexpr uint64_t kWorthKeeping = 16;

}  // namespace

// The pages that only kept sequences use.
uint64_t Scheduler::Loop::kept_pages() const {
    std::vector<const Sequence*> running;
    for (const auto& request : running_)
        if (request->sequence) running.push_back(&*request->sequence);
    const Engine::PageCount pages = count_pages();
    return pages.all - pages.free - engine_->pages_of(running);
}

// First come, first served; only those that wait for a common beginning, or for a file, let others pass.
void Scheduler::Loop::admit() {
    take_file();
    for (size_t i = 0; i < waiting_.size() && running_.size() < options_.parallel;) {
        Request& request = *waiting_[i];
        const Source source = source_for(request);
        if (awaits(request, source.tokens)) {
            ++i;
            continue;
        }
        if (!has_room(request, source)) return;
        if (awaits_file(request, source)) {
            ++i;
            continue;
        }
        start(take_waiting(waiting_.begin() + ptrdiff_t(i)), source);
    }
    if (running_.empty()) wait_for_file();
}

// The sequence that serves most of the request's text.
Scheduler::Loop::Source Scheduler::Loop::source_for(const Request& request) {
    Source best;
    if (!request.cached()) return best;
    best.kept = kept_->find(request.text());
    best.tokens = best.kept.tokens;
    for (const auto& other : running_) {
        if (!other->cached()) continue;
        const uint64_t tokens = served_by(*other->sequence, request.text());
        if (tokens > best.tokens) best = {tokens, &*other->sequence, {}};
    }
    return best;
}

// True while another request reads a beginning that both have, and that this one can then take over.
bool Scheduler::Loop::awaits(Request& request, uint64_t served) {
    if (!request.cached()) return false;
    const auto reads = [](const Request& other, uint64_t tokens) { return other.position() < tokens; };
    if (request.awaited > 0)
        for (const auto& other : running_)
            if (other->number == request.awaited && reads(*other, request.awaited_tokens)) return true;
    request.awaited = 0;
    for (const auto& other : running_) {
        if (!other->cached() || other->left() < 2) continue;
        uint64_t common =
            std::min<uint64_t>(common_beginning(other->text(), request.text()), request.text().size() - 1);
        if (!engine_->rewinds()) {
            const auto later = [common](uint64_t mark) { return mark > common; };
            const auto mark = std::find_if_not(other->marks.rbegin(), other->marks.rend(), later);
            common = mark == other->marks.rend() ? 0 : *mark;
        }
        if (common < served + kWorthWaiting || !reads(*other, common)) continue;
        request.awaited = other->number;
        request.awaited_tokens = common;
        return true;
    }
    return false;
}

// A request starts when its text finds pages, and those that run find another one each. Of what it takes over
// from a kept sequence the pages count as kept.
bool Scheduler::Loop::has_room(const Request& request, const Source& source) const {
    if (running_.empty() || engine_->pages().all == 0) return true;
    const uint64_t shared = source.running ? source.tokens / kPageRows : 0;
    const uint64_t wanted = pages_for(request.text().size()) + 1 - shared;
    return wanted + running_.size() <= engine_->pages().free + kept_pages();
}

// Models that cannot rewind go on only from where a sequence was kept. Conversations go on behind their last
// message, and different ones have the first in common. A text without messages is kept to its last token.
std::vector<uint64_t> Scheduler::Loop::marks_of(const Request& request) const {
    if (engine_->rewinds() || *options_.kept == 0 || !request.cached()) return {};
    const Tokenizer& tokenizer = engine_->model().tokenizer();
    const auto prompt = std::span(request.text()).first(request.prompt_tokens());
    std::vector<uint64_t> ends;
    for (size_t i = 0; i + 1 < prompt.size(); ++i)
        if (tokenizer.is_end_of_generation(prompt[i])) ends.push_back(i + 1);
    if (ends.empty()) ends.push_back(prompt.size() - 1);
    std::vector<uint64_t> marks = {ends.front()};
    if (ends.back() != ends.front()) marks.push_back(ends.back());
    std::erase_if(marks, [](uint64_t mark) { return mark < kWorthKeeping; });
    return marks;
}

void Scheduler::Loop::start(std::unique_ptr<Request> request, const Source& source) {
    const bool again = request->preempted();
    hold(*request, source.tokens);  // before a kept sequence is taken, so that no block seems to go
    const auto opened = [&]() -> Result<Sequence> {
        if (source.tokens == 0) return engine_->open_sequence();
        if (!source.running) return kept_->take(source.kept);
        Sequence fork = RL_TRY(source.running->fork());
        fork.rewind(source.tokens);
        return fork;
    };
    Result<Sequence> sequence = opened();
    if (!sequence) {
        release(*request);
        request->fail(sequence.error(), false);
        return end(std::move(request), StopReason::broken);
    }
    if (request->cached()) kept_->touch_first(request->text());
    request->marks = marks_of(*request);
    request->start(std::move(sequence).value(), source.tokens);
    if (speculation_ && !request->guesses) request->guesses = speculation_->open();
    while (counted_.slots[request->slot].doing != SlotState::Doing::idle) ++request->slot;
    counted_.slots[request->slot].doing = SlotState::Doing::reading;
    if (!again) {
        counted_.prompt_tokens += request->prompt_tokens();
        counted_.cached_tokens += source.tokens;
    }
    running_.push_back(std::move(request));
}

// The caches hold so much of the request's text.
void Scheduler::Loop::hold(Request& request, uint64_t tokens) {
    if (!options_.held || !request.cached() || tokens <= request.told) return;
    const std::span<const Token> text = request.text();
    options_.held->hold(text.first(tokens));
    if (request.told > 0) options_.held->release(text.first(request.told));
    request.told = tokens;
}

void Scheduler::Loop::release(Request& request) {
    if (request.told == 0) return;
    options_.held->release(std::span(request.text()).first(request.told));
    request.told = 0;
}

}  // namespace redline::serve
