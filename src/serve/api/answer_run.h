// Answers to one request on their way from the scheduler to a protocol: reasoning, text and calls of
// functions are told apart while they come.
#pragma once

#include "serve/api/prompt.h"
#include "text/chat/answer_text.h"

namespace redline::serve {

// One of the answers to a request, as far as it has come.
struct Choice {
    std::string content;
    std::string reasoning;
    std::vector<ToolCall> calls;
    std::vector<TokenLogprobs> logprobs;
    std::vector<Token> tokens;
    uint64_t reasoning_tokens = 0;
    AnswerEnd end;
};

// How a protocol writes answers. All calls come on the thread of the network.
class AnswerListener {
public:
    virtual ~AnswerListener() = default;
    // A part of the answer with this number. The text may be empty where tokens have none.
    virtual void piece(size_t /*choice*/, bool /*reasoning*/, const std::string& /*text*/,
                       std::span<const TokenLogprobs> /*logprobs*/) {}
    virtual void calls(size_t /*choice*/, const std::vector<ToolCall>& /*calls*/) {}
    virtual void ended(size_t /*choice*/, const Choice& /*answer*/) {}
    // All answers have ended.
    virtual void done(const std::vector<Choice>& answers) = 0;
    // In place of everything else that would come.
    virtual void failed(const Problem& problem) = 0;
};

// Submits a request for each answer that is wished for. What the scheduler refuses is a failure at once. The
// function that is returned cancels the answers, of which nothing more is told; it is for the thread of the
// network.
std::function<void()> run_answers(Service& service, const std::shared_ptr<Exchange>& exchange,
                                  const PreparedPrompt& prompt, const Wishes& wishes,
                                  std::unique_ptr<AnswerListener> listener);
// The context has no room for the prompt and a token of the answer.
std::optional<Problem> too_long(const Service& service, std::span<const Token> prompt);

// Facts that all protocols tell of answers that belong together.
struct Usage {
    uint64_t prompt = 0;
    uint64_t cached = 0;
    uint64_t generated = 0;
    uint64_t reasoning = 0;
};
Usage usage_of(const std::vector<Choice>& answers);
Json timings_json(const AnswerCost& cost);  // llama-server's
Problem problem_of(const Submission& refused);
// Cut by a limit of tokens, by the context or by a request's end.
bool is_cut(const AnswerEnd& end);

}  // namespace redline::serve
