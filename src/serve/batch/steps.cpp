// The steps of a scheduler: one token of each request that generates, and parts of prompts.
#include "serve/batch/loop.h"

#include <algorithm>
#include <bit>

namespace redline::serve {

namespace {

// GPUs without tiles for mixed steps read the keys of several sequences once for each row. Parts of prompts
// go along with the tokens of others if they are so short, or have so few keys; the rest has steps of its
// sequence alone.
constexpr uint64_t kTogether = 8, kTogetherKeys = 256;
// Kernels for few rows round differently from those for many. The prompt of a seeded request is read in parts
// that end at multiples of this, in steps of its sequence alone, so that it has the same ones whatever others
// do.
constexpr uint64_t kSeededPart = 64;

}  // namespace

void Scheduler::Loop::iterate() {
    Parts together = generating();
    std::vector<Parts> alone;
    add_prompts(together, alone);
    step(std::move(together));
    for (Parts& parts : alone)
        if (!loss_) step(std::move(parts));
}

// All that generate; where a step has fewer rows, those that come next in turn.
Scheduler::Loop::Parts Scheduler::Loop::generating() {
    Parts all;
    for (const auto& request : running_)
        if (request->generates()) all.push_back({request.get(), 1});
    const size_t most = std::min(engine_->options().batch, engine_->options().outputs);
    if (all.size() <= most) return all;
    first_generating_ %= all.size();
    std::rotate(all.begin(), all.begin() + ptrdiff_t(first_generating_), all.end());
    all.resize(most);
    first_generating_ += most;
    return all;
}

// Adds parts of prompts to the step of those that generate, or steps of their sequence alone.
void Scheduler::Loop::add_prompts(Parts& together, std::vector<Parts>& alone) {
    const uint32_t batch = engine_->options().batch, outputs = engine_->options().outputs;
    const auto generating = uint32_t(together.size());
    if (mixes_ && pace_.wants_measure(generating)) return;
    std::vector<Request*> readers;
    std::vector<PromptState> states;
    for (const auto& request : running_) {
        if (request->generates()) continue;
        readers.push_back(request.get());
        states.push_back({request->left(), request->passed_over});
    }
    // A row is left to what pads the step.
    const uint64_t part = std::min(kSeededPart, std::bit_floor(std::max<uint64_t>(batch, 2) - 1));
    uint64_t budget =
        mixes_ ? pace_.rows(generating, batch) : bursts_.rows(generating, readers.size(), batch);
    const bool mixed = mixes_ || tiles_;
    uint64_t room = batch - generating, read = 0;
    if (padding_ && room > 1) --room;  // see pads()
    for (const size_t i : prompt_order(states)) {
        Request& request = *readers[i];
        uint64_t tokens = std::min(request.left(), mixed ? std::min(budget, room) : budget);
        const bool apart = mixes_ && request.seeded() && tokens > 0;
        if (apart) tokens = std::min(request.left(), part - request.position() % part);
        if (!request.marks.empty()) tokens = std::min(tokens, request.marks.front() - request.position());
        const bool light = tokens <= kTogether || request.position() + tokens <= kTogetherKeys;
        const bool joins = !apart && (mixed || (light && tokens <= room)) && together.size() < outputs;
        if (tokens == 0 || (mixed && !joins && !apart)) break;
        if (joins) {
            together.push_back({&request, tokens});
            room -= tokens;
        } else {
            alone.push_back({{&request, tokens}});
        }
        budget -= std::min(budget, tokens);
        read += tokens;
        request.passed_over -= tokens;  // which `read` adds below
    }
    for (Request* request : readers) request->passed_over += read;
}

void Scheduler::Loop::preempt(Request& request) {
    const auto at = std::find_if(running_.begin(), running_.end(),
                                 [&](const auto& running) { return running.get() == &request; });
    request.preempt();
    counted_.slots[request.slot] = {};
    ++counted_.preemptions;
    waiting_.push_front(std::move(*at));
    running_.erase(at);
    const std::lock_guard lock(mutex_);
    ++unstarted_;
}

std::vector<Feed> Scheduler::Loop::feeds_of(const Parts& parts) {
    std::vector<Feed> feeds;
    for (const auto& [request, tokens] : parts)
        feeds.push_back(
            {&*request->sequence, std::span(request->text()).subspan(request->position(), tokens)});
    return feeds;
}

// Takes pages from kept sequences, and then from the youngest requests, until the parts that are left have
// all they need. The last request that runs has all pages there are: its context is full.
void Scheduler::Loop::find_pages(Parts& parts) {
    const auto preempted = [](const Part& part) { return !part.request->sequence; };
    std::erase_if(parts, preempted);
    while (!parts.empty() && !engine_->has_pages(feeds_of(parts))) {
        if (kept_->give_up()) continue;
        if (running_.size() == 1) {
            parts.clear();
            return leave(*running_.front(), StopReason::context_full);
        }
        preempt(**std::max_element(running_.begin(), running_.end(),
                                   [](const auto& a, const auto& b) { return a->number < b->number; }));
        std::erase_if(parts, preempted);
    }
}

// True when the step gets a row of another sequence, so that a seeded request has the same kernels as beside
// others: for one row, or one row of outputs, there are kernels that round differently.
bool Scheduler::Loop::pads(const Parts& parts) const {
    return padding_ && parts.size() == 1 && parts[0].request->seeded();
}

void Scheduler::Loop::step(Parts parts) {
    find_pages(parts);
    if (parts.empty()) return;
    for (const Part& part : parts) part.request->reads();
    std::vector<Feed> feeds = feeds_of(parts);
    if (pads(parts)) {
        padding_->rewind(0);
        feeds.push_back({&*padding_, kPadding});
    }
    const auto begin = Clock::now();
    const Status done = engine_->step(feeds, {.best = best_wanted(parts), .cancel = &abort_});
    if (!done) return step_went_wrong(parts, done.error());
    count(parts, std::chrono::duration<double>(Clock::now() - begin).count());
    keep_marked(parts);
    choose(parts);
}

// How many of the best logits are enough for all that get a token; 0: all are needed.
uint32_t Scheduler::Loop::best_wanted(const Parts& parts) {
    uint32_t most = 1;
    for (const auto& [request, tokens] : parts) {
        if (request->left() > tokens) continue;
        const uint32_t wanted = request->best_wanted();
        if (wanted == 0) return 0;
        most = std::max(most, wanted);
    }
    return most;
}

void Scheduler::Loop::step_went_wrong(const Parts& parts, const Error& problem) {
    if (engine_->lost()) return lose(problem);
    if (abort_) return;
    for (const Part& part : parts) {
        part.request->fail(problem, false);
        leave(*part.request, StopReason::broken);
    }
}

void Scheduler::Loop::count(const Parts& parts, double seconds) {
    uint32_t generating = 0, prompts = 0;
    for (const Part& part : parts) {
        const bool generates =
            part.request->text().size() > part.request->prompt_tokens() && part.tokens == 1;
        (generates ? generating : prompts) += uint32_t(part.tokens);
    }
    if (mixes_)
        pace_.measured(seconds, generating, prompts);
    else
        bursts_.measured(seconds, generating, prompts);
    ++counted_.steps;
    counted_.rows += generating + prompts;
    counted_.generating_rows += generating;
    counted_.generating_steps += generating > 0 ? 1 : 0;
    counted_.step_tokens.add(generating + prompts);
    const double of_prompts = seconds * prompts / (generating + prompts);
    counted_.prompt_seconds += of_prompts;
    counted_.generation_seconds += seconds - of_prompts;
}

void Scheduler::Loop::keep_marked(const Parts& parts) {
    for (const auto& [request, tokens] : parts) {
        if (request->marks.empty() || request->marks.front() != request->position()) continue;
        request->marks.erase(request->marks.begin());
        kept_->add_copy(*request->sequence);
    }
}

// Chooses the tokens that follow texts which were read to their end, and sends them.
void Scheduler::Loop::choose(const Parts& parts) {
    const size_t vocab = engine_->model().config().vocab, usable = engine_->model().usable_vocab();
    for (const Part& part : parts) part.request->progressed();
    std::vector<size_t> complete;
    for (size_t i = 0; i < parts.size(); ++i)
        if (parts[i].request->left() == 0) complete.push_back(i);
    const size_t rows = parts.size() + (pads(parts) ? 1 : 0), each = engine_->best().size() / rows;
    workers_->each(complete.size(), [&](size_t i) {
        Request& request = *parts[complete[i]].request;
        AnswerScores scores = {request.text().back(), {}, {}, engine_->device()};
        if (each > 0)
            scores.best = engine_->best().subspan(complete[i] * each, each);
        else
            scores.logits = engine_->output().subspan(complete[i] * vocab, usable);
        request.choose(scores, options_.context);
    });
    for (const size_t i : complete)
        if (Request& request = *parts[i].request; request.deliver(counted_)) leave(request, request.reason());
}

}  // namespace redline::serve
