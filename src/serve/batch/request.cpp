#include "serve/batch/request.h"

namespace redline::serve {

namespace {

double seconds_between(Request::Clock::time_point from, Request::Clock::time_point to) {
    return std::chrono::duration<double>(to - from).count();
}

GenerateOptions options_of(const AnswerRequest& asked) {
    GenerateOptions options;
    options.max_tokens = asked.max_tokens;
    options.min_tokens = asked.min_tokens;
    options.stops = asked.stops;
    options.stop_tokens = asked.stop_tokens;
    options.show_special = asked.show_special;
    options.shown = asked.shown;
    options.forced = asked.forced;
    options.logprobs = asked.logprobs;
    return options;
}

}  // namespace

Result<std::unique_ptr<Request>> Request::create(const Model& model, AnswerRequest asked, uint64_t context) {
    Sampler sampler =
        RL_TRY(make_sampler(model, asked.sampling, asked.ignore_eos, context, asked.constraint));
    for (const Token token : asked.prompt) sampler.accept(token);
    return std::unique_ptr<Request>(new Request(model, std::move(asked), std::move(sampler)));
}

Request::Request(const Model& model, AnswerRequest asked, Sampler sampler)
    : asked_(std::move(asked)),
      options_(options_of(asked_)),
      sampler_(std::move(sampler)),
      writer_(model, sampler_, options_),
      ticket_(asked_.ticket ? asked_.ticket : std::make_shared<AnswerTicket>()),
      text_(std::move(asked_.prompt)),
      prompt_tokens_(text_.size()) {
    cost_.prompt_tokens = prompt_tokens_;
}

void Request::start(Sequence with, uint64_t held) {
    sequence = std::move(with);
    awaited = 0;
    std::erase_if(marks, [held](uint64_t mark) { return mark <= held; });
    if (!begun_) cost_.cached_tokens = held;
}

void Request::preempt() {
    sequence.reset();
    if (guesses) guesses->reader.reset();
    ++cost_.preempted;
}

void Request::reads() {
    if (!begun_) begun_ = Clock::now();
}

void Request::progressed() {
    if (asked_.sink.progress && text_.size() == prompt_tokens_)
        asked_.sink.progress(position(), prompt_tokens_);
}

uint64_t Request::room_for_drafts(uint64_t context) const {
    const uint64_t room = context - std::min(context, position() + 1);
    if (options_.max_tokens < 0) return room;
    // The last token is chosen behind a guess.
    const uint64_t left = uint64_t(options_.max_tokens) - writer_.tokens().size();
    return std::min(room, left - std::min<uint64_t>(left, 1));
}

void Request::count_guess(uint64_t proposed, uint64_t right) {
    cost_.drafted += proposed;
    cost_.accepted += right;
}

void Request::choose(const AnswerScores& scores, uint64_t read, uint64_t context) {
    reason_ = writer_.before_token();  // where no token is wanted at all
    if (reason_) return;
    Result<AnswerWriter::Reason> next = writer_.next(scores, context - read + 1);
    if (!next) return fail(next.error(), false);
    reason_ = *next;
    if (reason_) return;
    text_.push_back(writer_.last());
    reason_ = writer_.before_token();
    if (!reason_ && read >= context) reason_ = StopReason::context_full;
}

void Request::fail(const Error& problem, bool device_lost) {
    problem_ = problem;
    reason_ = StopReason::broken;
    device_lost_ = device_lost;
}

bool Request::deliver(Statistics& statistics) {
    const auto now = Clock::now();
    const size_t came = writer_.tokens().size() - sent_;
    if (!first_ && (came > 0 || reason_)) {
        first_ = now;
        statistics.first_token.add(seconds_between(submitted_, now));
    } else if (came > 0 && last_) {
        for (size_t i = 0; i < came; ++i)
            statistics.inter_token.add(seconds_between(*last_, now) / double(came));
    }
    last_ = now;
    statistics.generated_tokens += came;
    if (came > 0) send_piece();
    return reason_.has_value();
}

void Request::send_piece() {
    const auto from = ptrdiff_t(sent_);
    AnswerPiece piece;
    piece.text = writer_.take_text();
    piece.tokens.assign(writer_.tokens().begin() + from, writer_.tokens().end());
    if (options_.logprobs >= 0)
        piece.logprobs.assign(writer_.logprobs().begin() + from, writer_.logprobs().end());
    sent_ = writer_.tokens().size();
    if (asked_.sink.piece && !(piece.text.empty() && piece.tokens.empty()))
        asked_.sink.piece(std::move(piece));
}

AnswerEnd Request::close(StopReason reason, Statistics& statistics) {
    const auto now = Clock::now();
    AnswerEnd end;
    end.reason = writer_.finish(reason);
    send_piece();
    end.stop = writer_.stop();
    end.stop_token = writer_.ended_by();
    end.problem = problem_;
    if (problem_.ok() && reason == StopReason::broken) end.problem = error("{}", writer_.fault());
    end.device_lost = device_lost_;
    cost_.generated_tokens = writer_.tokens().size();
    cost_.queue_seconds = seconds_between(submitted_, begun_.value_or(now));
    if (begun_) cost_.prompt_seconds = seconds_between(*begun_, first_.value_or(now));
    if (first_) cost_.generation_seconds = seconds_between(*first_, now);
    end.cost = cost_;
    statistics.queued.add(cost_.queue_seconds);
    statistics.prompt.add(cost_.prompt_seconds);
    statistics.generation.add(cost_.generation_seconds);
    statistics.whole.add(seconds_between(submitted_, now));
    statistics.count_end(end.reason);
    statistics.most_tokens = std::max<uint64_t>(statistics.most_tokens, text_.size());
    return end;
}

void Request::send(AnswerEnd end) {
    if (asked_.sink.end) asked_.sink.end(std::move(end));
}

}  // namespace redline::serve
