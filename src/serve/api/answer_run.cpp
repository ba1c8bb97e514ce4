#include "serve/api/answer_run.h"

namespace redline::serve {

namespace {

class AnswerRun : public std::enable_shared_from_this<AnswerRun> {
public:
    AnswerRun(std::shared_ptr<Exchange> exchange, const PreparedPrompt& prompt, size_t count,
              std::unique_ptr<AnswerListener> listener)
        : exchange_(std::move(exchange)),
          prompt_tokens_(prompt.tokens.size()),
          tools_(prompt.tools),
          parallel_(prompt.parallel),
          listener_(std::move(listener)),
          states_(count),
          answers_(count) {
        for (State& state : states_)
            state.text.emplace(prompt.reasoning, last_scaffold(prompt.parts), [&state](const auto& piece) {
                state.fresh.push_back(piece);
                return true;
            });
    }

    Status submit(Service& service, const PreparedPrompt& prompt, const Wishes& wishes);
    void cancel() {
        failed_ = true;
        for (const auto& ticket : tickets_) ticket->cancel();
    }
    void fail(const Problem& problem);

private:
    struct State {
        // Used by the thread that computes.
        std::optional<AnswerText> text;
        std::vector<redline::AnswerPiece> fresh;
        uint64_t reasoning_tokens = 0;
        // Used by the thread of the network.
        CallWatch watch;
        std::string shown;                   // of the content
        std::vector<TokenLogprobs> pending;  // of tokens whose text is held back
    };

    Result<AnswerRequest> request(Service& service, const PreparedPrompt& prompt, const Wishes& wishes,
                                  size_t index);
    void piece(size_t index, AnswerPiece piece);
    void end(size_t index, AnswerEnd end);
    void take(size_t index, const std::vector<redline::AnswerPiece>& pieces,
              std::vector<TokenLogprobs> logprobs, std::vector<Token> tokens, bool reasoning);
    void show(size_t index, bool reasoning, const std::string& text);
    void finish(size_t index, uint64_t reasoning_tokens, AnswerEnd end);
    void count() const;

    const std::shared_ptr<Exchange> exchange_;
    const uint64_t prompt_tokens_;
    const Json tools_;
    const bool parallel_;
    std::unique_ptr<AnswerListener> listener_;
    std::vector<State> states_;
    std::vector<Choice> answers_;
    std::vector<std::shared_ptr<AnswerTicket>> tickets_;
    size_t ended_ = 0;
    bool failed_ = false;
};

Result<AnswerRequest> AnswerRun::request(Service& service, const PreparedPrompt& prompt, const Wishes& wishes,
                                         size_t index) {
    AnswerRequest out;
    out.prompt = prompt.tokens;
    out.sampling = wishes.sampling;
    if (out.sampling.seed != kRandomSeed) {
        out.sampling.seed += uint32_t(index);
        if (out.sampling.seed == kRandomSeed) out.sampling.seed = 0;  // that one means random
    }
    if (!wishes.grammar.empty()) {
        out.constraint = RL_TRY(service.constraint(wishes.grammar));
        out.constraint->expect_reasoning(prompt.reasoning, last_scaffold(prompt.parts), prompt.reasons);
    }
    out.ignore_eos = wishes.ignore_eos;
    out.max_tokens = wishes.max_tokens;
    out.min_tokens = wishes.min_tokens;
    out.stops = wishes.stops;
    out.stop_tokens = wishes.stop_tokens;
    out.shown = prompt.shown;
    if (prompt.reasoning_budget >= 0)
        out.forced = [self = shared_from_this(),
                      limit = states_[index].text->reasoning_limit(
                          service.tokenizer(), uint64_t(prompt.reasoning_budget))] { return limit(); };
    out.logprobs = wishes.logprobs;
    out.cache_prompt = wishes.cache_prompt;
    out.sink.piece = [self = shared_from_this(), index](AnswerPiece piece) {
        self->piece(index, std::move(piece));
    };
    out.sink.end = [self = shared_from_this(), index](AnswerEnd end) { self->end(index, std::move(end)); };
    return out;
}

Status AnswerRun::submit(Service& service, const PreparedPrompt& prompt, const Wishes& wishes) {
    std::vector<AnswerRequest> requests;
    for (size_t i = 0; i < states_.size(); ++i)
        requests.push_back(RL_TRY(request(service, prompt, wishes, i)));
    exchange_->count_tokens(prompt_tokens_, 0);  // for a client that goes before the first piece
    std::vector<std::shared_ptr<AnswerTicket>> tickets;
    for (AnswerRequest& each : requests) {
        Submission given = service.answers.submit(std::move(each));
        if (!given.ticket) {
            for (const auto& ticket : tickets) ticket->cancel();
            exchange_->post(
                [self = shared_from_this(), problem = problem_of(given)] { self->fail(problem); });
            return {};
        }
        tickets.push_back(std::move(given.ticket));
    }
    exchange_->post([self = shared_from_this(), tickets] {
        self->tickets_ = tickets;
        if (self->failed_)
            for (const auto& ticket : tickets) ticket->cancel();
    });
    exchange_->when_gone([tickets] {
        for (const auto& ticket : tickets) ticket->cancel();
    });
    return {};
}

void AnswerRun::piece(size_t index, AnswerPiece piece) {
    State& state = states_[index];
    const bool before = state.text->in_reasoning();
    state.text->push(piece.text);
    const bool reasoning = before || state.text->in_reasoning();
    if (reasoning) state.reasoning_tokens += piece.tokens.size();
    exchange_->post([self = shared_from_this(), index, pieces = std::exchange(state.fresh, {}), reasoning,
                     piece = std::move(piece)]() mutable {
        self->take(index, pieces, std::move(piece.logprobs), std::move(piece.tokens), reasoning);
    });
}

void AnswerRun::end(size_t index, AnswerEnd end) {
    State& state = states_[index];
    state.text->finish();
    exchange_->post([self = shared_from_this(), index, pieces = std::exchange(state.fresh, {}),
                     reasoning = state.reasoning_tokens, end = std::move(end)]() mutable {
        self->take(index, pieces, {}, {}, false);
        self->finish(index, reasoning, std::move(end));
    });
}

void AnswerRun::take(size_t index, const std::vector<redline::AnswerPiece>& pieces,
                     std::vector<TokenLogprobs> logprobs, std::vector<Token> tokens, bool reasoning) {
    if (failed_) return;
    State& state = states_[index];
    Choice& answer = answers_[index];
    answer.tokens.insert(answer.tokens.end(), tokens.begin(), tokens.end());
    answer.logprobs.insert(answer.logprobs.end(), logprobs.begin(), logprobs.end());
    state.pending.insert(state.pending.end(), logprobs.begin(), logprobs.end());
    count();
    for (const redline::AnswerPiece& each : pieces) {
        (each.reasoning ? answer.reasoning : answer.content) += each.text;
        if (each.reasoning)
            show(index, true, each.text);
        else
            show(index, false, tools_.empty() ? each.text : state.watch.push(each.text));
    }
    // Tokens of the marks of reasoning have no text, and are no part of the text that follows.
    if (reasoning && !state.pending.empty())
        listener_->piece(index, true, {}, std::exchange(state.pending, {}));
}

// The cost of an answer is known at its end only; until then its tokens are those that have a text.
void AnswerRun::count() const {
    uint64_t generated = 0;
    for (const Choice& answer : answers_)
        generated += std::max<uint64_t>(answer.tokens.size(), answer.end.cost.generated_tokens);
    exchange_->count_tokens(prompt_tokens_, generated);
}

void AnswerRun::show(size_t index, bool reasoning, const std::string& text) {
    State& state = states_[index];
    if (text.empty()) return;
    if (!reasoning) state.shown += text;
    listener_->piece(index, reasoning, text, std::exchange(state.pending, {}));
}

void AnswerRun::finish(size_t index, uint64_t reasoning_tokens, AnswerEnd end) {
    if (failed_) return;
    State& state = states_[index];
    Choice& answer = answers_[index];
    answer.reasoning_tokens = reasoning_tokens;
    answer.end = std::move(end);
    count();
    if (!answer.end.problem.ok())
        return fail(
            {.status = answer.end.device_lost ? 503 : 500, .message = answer.end.problem.error().message});
    if (answer.end.reason == StopReason::cancelled)
        return fail({.status = 503, .message = "the answer was cancelled: the server ends"});
    if (!tools_.empty()) {
        ParsedAnswer parsed = parse_tool_calls(answer.content, tools_);
        if (!parallel_ && parsed.calls.size() > 1) parsed.calls.resize(1);
        for (size_t i = 0; i < parsed.calls.size(); ++i)
            // Names that count within one answer would come again in the next one.
            if (parsed.calls[i].id == fmt::format("call_{}", i + 1)) parsed.calls[i].id = new_id("call_");
        answer.content = std::move(parsed.content);
        answer.calls = std::move(parsed.calls);
    }
    if (answer.content.size() > state.shown.size() && answer.content.starts_with(state.shown))
        show(index, false, answer.content.substr(state.shown.size()));
    if (!state.pending.empty()) listener_->piece(index, false, {}, std::exchange(state.pending, {}));
    if (!answer.calls.empty()) listener_->calls(index, answer.calls);
    listener_->ended(index, answer);
    if (++ended_ == answers_.size()) listener_->done(answers_);
}

void AnswerRun::fail(const Problem& problem) {
    if (failed_) return;
    cancel();
    listener_->failed(problem);
}

}  // namespace

std::function<void()> run_answers(Service& service, const std::shared_ptr<Exchange>& exchange,
                                  const PreparedPrompt& prompt, const Wishes& wishes,
                                  std::unique_ptr<AnswerListener> listener) {
    const auto run = std::make_shared<AnswerRun>(exchange, prompt, wishes.count, std::move(listener));
    if (const std::optional<Problem> problem = too_long(service, prompt.tokens)) {
        exchange->post([run, problem = *problem] { run->fail(problem); });
    } else if (const Status submitted = run->submit(service, prompt, wishes); !submitted) {
        exchange->post([run, message = submitted.error().message] { run->fail({.message = message}); });
    }
    // The scheduler keeps the run until its answers have ended; a listener that kept it would never end.
    return [run = std::weak_ptr(run)] {
        if (const auto running = run.lock()) running->cancel();
    };
}

std::optional<Problem> too_long(const Service& service, std::span<const Token> prompt) {
    const uint64_t context = service.served.context;
    if (prompt.size() < context) return {};
    return Problem{
        // Clients shorten a conversation, or begin another, where they read "prompt is too long" (Anthropic's
        // words) or "exceeds the available context size" (llama-server's).
        .message =
            fmt::format("the prompt is too long: with {} tokens and an answer it exceeds the available "
                        "context size of {} tokens; a shorter one fits, or a server with a larger -c",
                        prompt.size(), context),
        .type = "exceed_context_size_error",
        .prompt_tokens = prompt.size(),
        .context = context};
}

Usage usage_of(const std::vector<Choice>& answers) {
    Usage usage;
    usage.prompt = answers[0].end.cost.prompt_tokens;
    usage.cached = answers[0].end.cost.cached_tokens;
    for (const Choice& each : answers) {
        usage.generated += each.end.cost.generated_tokens;
        usage.reasoning += each.reasoning_tokens;
    }
    return usage;
}

Json timings_json(const AnswerCost& cost) {
    const auto each = [](double seconds, uint64_t count) {
        return count > 0 ? seconds * 1e3 / double(count) : 0.0;
    };
    const auto rate = [](double seconds, uint64_t count) {
        return seconds > 0.0 ? double(count) / seconds : 0.0;
    };
    const uint64_t read = cost.prompt_tokens - std::min(cost.prompt_tokens, cost.cached_tokens);
    Json timings = {{"cache_n", cost.cached_tokens},
                    {"prompt_n", read},
                    {"prompt_ms", cost.prompt_seconds * 1e3},
                    {"prompt_per_token_ms", each(cost.prompt_seconds, read)},
                    {"prompt_per_second", rate(cost.prompt_seconds, read)},
                    {"predicted_n", cost.generated_tokens},
                    {"predicted_ms", cost.generation_seconds * 1e3},
                    {"predicted_per_token_ms", each(cost.generation_seconds, cost.generated_tokens)},
                    {"predicted_per_second", rate(cost.generation_seconds, cost.generated_tokens)},
                    {"queue_ms", cost.queue_seconds * 1e3}};
    if (cost.drafted > 0) timings.update({{"draft_n", cost.drafted}, {"draft_n_accepted", cost.accepted}});
    return timings;
}

Problem problem_of(const Submission& refused) {
    Problem problem{.message = refused.message, .retry_seconds = refused.retry_seconds};
    switch (refused.refusal) {
        case Refusal::prompt_too_long:
            problem.type = "exceed_context_size_error";
            problem.prompt_tokens = refused.prompt_tokens;
            problem.context = refused.context;
            break;
        case Refusal::queue_full:
            problem.status = 429;
            break;
        case Refusal::draining:
        case Refusal::device_lost:
            problem.status = 503;
            break;
        default:
            break;
    }
    return problem;
}

bool is_cut(const AnswerEnd& end) {
    return end.reason == StopReason::max_tokens || end.reason == StopReason::context_full;
}

}  // namespace redline::serve
