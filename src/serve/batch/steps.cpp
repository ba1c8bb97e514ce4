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
    guess(together);
    step(std::move(together));
    for (Parts& parts : alone)
        if (!loss_) step(std::move(parts));
}

// All that generate; where a step has fewer rows, those that come next in turn.
Scheduler::Loop::Parts Scheduler::Loop::generating() {
    Parts all;
    for (const auto& request : running_)
        if (request->generates()) all.push_back({request.get(), 1, true});
    const size_t most = std::min(engine_->options().batch, plain_outputs());
    if (all.size() <= most) return all;
    first_generating_ %= all.size();
    std::rotate(all.begin(), all.begin() + ptrdiff_t(first_generating_), all.end());
    all.resize(most);
    first_generating_ += most;
    return all;
}

// The tokens of a prompt that several places read at a time, each another chunk, while nobody generates; 0:
// none are.
uint64_t Scheduler::Loop::tokens_in_flight(const Request& request) const {
    constexpr uint64_t kChunks = 4;  // for each place: at the ends of a flight some of them wait
    if (mixes_ || engine_->places() < 2) return 0;
    uint64_t tokens = std::min(request.left(), kChunks * engine_->places() * engine_->options().batch);
    if (!request.marks.empty()) tokens = std::min(tokens, request.marks.front() - request.position());
    return tokens;
}

// Adds parts of prompts to the step of those that generate, or steps of their sequence alone.
void Scheduler::Loop::add_prompts(Parts& together, std::vector<Parts>& alone) {
    const uint32_t batch = engine_->options().batch, outputs = plain_outputs();
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
        if (const uint64_t tokens = tokens_in_flight(request);
            tokens > batch && together.empty() && read == 0) {
            alone.push_back({{&request, tokens}});
            read = tokens;
            request.passed_over -= tokens;
            break;
        }
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

// Steps that read prompts are full without guesses.
void Scheduler::Loop::guess(Parts& parts) {
    const auto reads = [](const Part& part) { return !part.generates; };
    if (!speculation_ || std::any_of(parts.begin(), parts.end(), reads)) return;
    std::vector<TextDraft> drafts;
    for (const Part& part : parts)
        drafts.push_back({&*part.request->guesses, &*part.request->sequence, part.request->text().back(),
                          part.request->room_for_drafts(options_.context)});
    const uint64_t taken = parts.size() + (padding_ ? 1 : 0), outputs = engine_->options().outputs;
    const uint64_t room = outputs - std::min<uint64_t>(outputs, taken);
    if (const Status done = speculation_->propose(drafts, room, &abort_); !done)
        say_guesses_failed(done.error());
    for (size_t i = 0; i < parts.size(); ++i) {
        if (drafts[i].tokens.empty()) continue;
        parts[i].round = {drafts[i].last};
        parts[i].round.insert(parts[i].round.end(), drafts[i].tokens.begin(), drafts[i].tokens.end());
        parts[i].tokens = parts[i].round.size();
    }
}

// The answers go on without guesses.
void Scheduler::Loop::say_guesses_failed(const Error& problem) {
    if (abort_ || std::exchange(guesses_failed_, true)) return;
    host_.notes->note(fmt::format("{} cannot guess for now: {}", speculation_->methods(), problem.message));
}

void Scheduler::Loop::preempt(Request& request) {
    const auto at = std::find_if(running_.begin(), running_.end(),
                                 [&](const auto& running) { return running.get() == &request; });
    request.preempt();
    release(request);
    counted_.slots[request.slot] = {};
    ++counted_.preemptions;
    waiting_.push_front(std::move(*at));
    running_.erase(at);
    const std::lock_guard lock(mutex_);
    ++unstarted_;
}

std::vector<Feed> Scheduler::Loop::feeds_of(const Parts& parts) {
    std::vector<Feed> feeds;
    for (const Part& part : parts) {
        const std::span<const Token> text = part.request->text();
        feeds.push_back({&*part.request->sequence,
                         part.round.empty() ? text.subspan(part.request->position(), part.tokens)
                                            : std::span<const Token>(part.round),
                         part.outputs()});
    }
    return feeds;
}

// Takes pages from guesses, from kept sequences, and then from the youngest requests, until the parts that
// are left have all they need. The last request that runs has all pages there are: its context is full.
void Scheduler::Loop::find_pages(Parts& parts) {
    const auto preempted = [](const Part& part) { return !part.request->sequence; };
    std::erase_if(parts, preempted);
    if (!parts.empty() && !engine_->has_pages(feeds_of(parts)))
        for (Part& part : parts)
            if (!std::exchange(part.round, {}).empty()) part.tokens = 1;
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
        feeds.push_back({&*padding_, kPadding, 1});
    }
    const auto begin = Clock::now();
    const bool flies = parts.front().tokens > engine_->options().batch;  // see tokens_in_flight()
    const auto unused = [](size_t, std::span<const float>) {};
    const Status done = flies ? engine_->feed(feeds, unused, &abort_)
                              : engine_->step(feeds, {.best = best_wanted(parts), .cancel = &abort_});
    if (!done) return step_went_wrong(parts, done.error());
    count(parts, std::chrono::duration<double>(Clock::now() - begin).count());
    keep_marked(parts);
    choose(parts);
}

// How many of the best logits are enough for all that get a token; 0: all are needed.
uint32_t Scheduler::Loop::best_wanted(const Parts& parts) {
    uint32_t most = 1;
    for (const Part& part : parts) {
        if (part.request->left() > part.tokens) continue;
        const uint32_t wanted = part.request->best_wanted();
        if (wanted == 0) return 0;
        most = std::max(most, wanted + uint32_t(part.drafts()));  // penalties want more with each token
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
    uint32_t generating = 0, prompts = 0, drafts = 0;
    for (const Part& part : parts) {
        const bool generates = part.generates || (part.tokens == 1 && part.request->generated_tokens() > 0);
        (generates ? generating : prompts) += generates ? 1 : uint32_t(part.tokens);
        drafts += uint32_t(part.drafts());
    }
    if (speculation_ && prompts == 0) speculation_->measured(generating + drafts, seconds);
    if (mixes_)
        pace_.measured(seconds, generating, prompts);
    else
        bursts_.measured(seconds, generating, prompts);
    ++counted_.steps;
    counted_.rows += generating + prompts + drafts;
    counted_.generating_rows += generating;
    counted_.generating_steps += generating > 0 ? 1 : 0;
    counted_.step_tokens.add(generating + prompts + drafts);
    const double of_prompts = seconds * prompts / (generating + prompts);
    counted_.prompt_seconds += of_prompts;
    counted_.generation_seconds += seconds - of_prompts;
}

void Scheduler::Loop::keep_marked(const Parts& parts) {
    for (const Part& part : parts) {
        Request& request = *part.request;
        if (request.marks.empty() || request.marks.front() != request.position()) continue;
        request.marks.erase(request.marks.begin());
        kept_->add_copy(*request.sequence);
    }
}

// Chooses the token behind each row of a part whose text was read to its end, as long as these are the tokens
// of its guess. `output`: the first of its rows among those with an output.
void Scheduler::Loop::choose_for(Part& part, size_t output, size_t outputs) {
    const size_t vocab = engine_->model().config().vocab, usable = engine_->model().usable_vocab();
    const size_t each = engine_->best().size() / outputs;
    Request& request = *part.request;
    const uint64_t before = request.position() - part.tokens, drafts = part.drafts();
    for (part.used = part.tokens - drafts;; ++part.used) {
        const size_t row = output + part.used - (part.tokens - drafts);
        AnswerScores scores = {request.text().back(), {}, {}, engine_->device()};
        if (each > 0)
            scores.best = engine_->best().subspan(row * each, each);
        else
            scores.logits = engine_->output().subspan(row * vocab, usable);
        request.choose(scores, before + part.used, options_.context);
        const bool right =
            part.used < part.tokens && !request.has_ended() && request.text().back() == part.round[part.used];
        if (!right) return;
        const uint32_t wanted = request.best_wanted();
        if (each > 0 && (wanted == 0 || wanted > each)) return;
        if (request.sends_each()) request.deliver(counted_);
    }
}

// The sequence forgets the tokens of the guess that were wrong.
void Scheduler::Loop::take_back(Part& part) {
    if (!speculation_) return;
    Request& request = *part.request;
    const uint64_t drafts = part.drafts(), right = part.used - (part.tokens - drafts);
    if (part.generates) speculation_->tell(*request.guesses, drafts, right);
    if (drafts == 0) return;
    request.sequence->rewind(request.position() - part.tokens + part.used);
    request.count_guess(drafts, right);
    counted_.count_guess(drafts, right);
}

// Chooses the tokens that follow texts which were read to their end, and sends them.
void Scheduler::Loop::choose(Parts& parts) {
    for (const Part& part : parts) {
        part.request->progressed();
        const uint64_t prompt = part.request->prompt_tokens();
        if (part.request->position() >= prompt) hold(*part.request, prompt);
    }
    struct Complete {
        Part* part;
        size_t output;
    };
    std::vector<Complete> complete;
    size_t outputs = 0;
    for (Part& part : parts) {
        const uint64_t read = part.request->position() - part.drafts();
        if (read == part.request->text().size()) complete.push_back({&part, outputs});
        outputs += part.outputs();
    }
    if (pads(parts)) ++outputs;
    const auto choose_one = [&](const Complete& one) { choose_for(*one.part, one.output, outputs); };
    workers_->each(complete.size(), [&](size_t i) {
        if (!complete[i].part->request->sends_each()) choose_one(complete[i]);
    });
    for (const Complete& one : complete) {
        Request& request = *one.part->request;
        if (request.sends_each()) choose_one(one);
        take_back(*one.part);
        if (request.deliver(counted_)) leave(request, request.reason());
    }
}

}  // namespace redline::serve
