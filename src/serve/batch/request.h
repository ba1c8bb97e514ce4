// A request on its way through the scheduler: its tokens, its writer, its times. All calls but choose() come
// from the thread that computes.
#pragma once

#include "engine/answer_writer.h"
#include "serve/batch/answer.h"
#include "serve/batch/statistics.h"
#include "speculate/shared_speculation.h"

#include <chrono>

namespace redline::serve {

class Request {
public:
    using Clock = std::chrono::steady_clock;

    static Result<std::unique_ptr<Request>> create(const Model& model, AnswerRequest asked, uint64_t context);
    Request(const Request&) = delete;

    const std::shared_ptr<AnswerTicket>& ticket() const { return ticket_; }
    bool cancelled() const { return ticket_->cancelled(); }
    bool cached() const { return asked_.cache_prompt; }
    bool seeded() const { return asked_.sampling.seed != kRandomSeed; }
    bool preempted() const { return cost_.preempted > 0; }
    uint64_t prompt_tokens() const { return prompt_tokens_; }
    uint64_t generated_tokens() const { return writer_.tokens().size(); }
    const AnswerCost& cost() const { return cost_; }

    // The prompt, and behind it the tokens chosen so far.
    const std::vector<Token>& text() const { return text_; }
    uint64_t position() const { return sequence ? sequence->position() : 0; }
    uint64_t left() const { return text_.size() - position(); }
    // True when one token is to be read, which was chosen last.
    bool generates() const { return text_.size() > prompt_tokens_ && left() == 1; }
    uint32_t best_wanted() const { return writer_.best_wanted(); }

    // Has the sequence now, which holds so many of its tokens already.
    void start(Sequence with, uint64_t held);
    // Gives the sequence up; its tokens are read again later.
    void preempt();
    // Counts the first step, which begins now.
    void reads();
    // Tells how much of the prompt is read.
    void progressed();

    // Tokens that a guess of what follows may have.
    uint64_t room_for_drafts(uint64_t context) const;
    // True when what is sent decides about the tokens that follow.
    bool sends_each() const { return bool(options_.forced); }

    // Takes the logits behind `read` tokens, which are all of its text, and chooses what follows; in any
    // thread.
    void choose(const AnswerScores& scores, uint64_t read, uint64_t context);
    bool has_ended() const { return reason_.has_value(); }
    // Counts a guess that its last step has checked.
    void count_guess(uint64_t proposed, uint64_t right);
    // Sends what was chosen. True: the answer has ended, and close() is to be called.
    bool deliver(Statistics& statistics);
    void fail(const Error& problem, bool device_lost);
    // Sends the text that was held back, and tells how the answer ended, for send().
    AnswerEnd close(StopReason reason, Statistics& statistics);
    void send(AnswerEnd end);
    StopReason reason() const { return reason_.value_or(StopReason::cancelled); }

    std::optional<Sequence> sequence;
    std::optional<TextGuesses> guesses;  // where there is speculation
    uint64_t number = 0;                 // by age, from 1
    uint64_t passed_over = 0;            // see PromptState
    uint32_t slot = 0;                   // see Statistics::slots
    // Positions in the prompt behind which the sequence is kept for others, in order.
    std::vector<uint64_t> marks;
    // The number of a request that reads a beginning of this one's text, and how far it has to be; 0: none.
    uint64_t awaited = 0, awaited_tokens = 0;
    bool awaits_file = false;  // one that serves this request is being read, or waits to be
    bool had_file = false;     // it was read for this request, and is not again
    uint64_t told = 0;         // tokens of its text that HeldBlocks counts for it

private:
    Request(const Model& model, AnswerRequest asked, Sampler sampler);
    void send_piece();

    AnswerRequest asked_;
    GenerateOptions options_;
    Sampler sampler_;
    AnswerWriter writer_;
    std::shared_ptr<AnswerTicket> ticket_;
    std::vector<Token> text_;
    uint64_t prompt_tokens_;
    size_t sent_ = 0;  // of the tokens generated
    std::optional<StopReason> reason_;
    Status problem_;
    bool device_lost_ = false;
    AnswerCost cost_;
    const Clock::time_point submitted_ = Clock::now();
    std::optional<Clock::time_point> begun_, first_, last_;  // the first step, the first and the last token
};

}  // namespace redline::serve
