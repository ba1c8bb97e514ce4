// A request to a loaded model, and the events by which its answer comes. Nothing here knows of HTTP or of
// JSON.
#pragma once

#include "engine/generate.h"

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace redline::serve {

// A part of an answer that will not change any more.
struct AnswerPiece {
    std::string text;                     // whole characters; may be empty where tokens are held back
    std::vector<Token> tokens;            // that the piece is made of
    std::vector<TokenLogprobs> logprobs;  // one for each token, where they are asked for
};

// The work that an answer took, for usage, timings and metrics.
struct AnswerCost {
    uint64_t prompt_tokens = 0;
    uint64_t cached_tokens = 0;     // of the prompt, that no step had to read
    uint64_t generated_tokens = 0;  // the one that ends the answer not included
    double queue_seconds = 0.0;     // until the first step with a token of the prompt
    double prompt_seconds = 0.0;    // from there to the first token
    double generation_seconds = 0.0;
    uint64_t drafted = 0;    // tokens that were guessed
    uint64_t accepted = 0;   // of these, those that the model chose as well
    uint64_t preempted = 0;  // how often its pages were taken for others, and it was read again
};

struct AnswerEnd {
    StopReason reason = StopReason::max_tokens;
    std::string stop;       // the stop string found
    Token stop_token = -1;  // of AnswerRequest::stop_tokens, or the end of generation
    Status problem;         // an error of the device or the sampler ended the answer: its reason is broken
    bool device_lost = false;
    AnswerCost cost;
};

// Called by the thread that computes, in the order of the answer; they have to return at once.
struct AnswerSink {
    std::function<void(uint64_t read, uint64_t prompt)> progress = {};  // of the prompt; may be missing
    std::function<void(AnswerPiece)> piece;
    std::function<void(AnswerEnd)> end;  // exactly once, the last call
};

// Ends its request at the next step once it is cancelled, waiting and reading ones included.
class AnswerTicket {
public:
    void cancel() { cancelled_ = true; }
    bool cancelled() const { return cancelled_; }

private:
    std::atomic<bool> cancelled_ = false;
};

struct AnswerRequest {
    std::vector<Token> prompt;
    SamplerOptions sampling;
    std::shared_ptr<Constraint> constraint = {};  // see make_constraint(); for this request alone
    bool ignore_eos = false;
    int64_t max_tokens = -1;  // -1: until another reason; 0: the prompt is read, nothing is generated
    uint64_t min_tokens = 0;  // no end of generation before
    std::vector<std::string> stops = {};
    std::vector<Token> stop_tokens = {};
    bool show_special = false;
    std::vector<Token> shown = {};  // control tokens that are written out in any case
    // Called before each token, by any thread: tokens that replace the model's choice, as
    // GenerateOptions::forced.
    std::function<std::vector<Token>()> forced = {};
    int32_t logprobs = -1;     // so many of the likeliest with each token; -1: none
    bool cache_prompt = true;  // false: no pages of others are used, and none are left for others
    AnswerSink sink;
    std::shared_ptr<AnswerTicket> ticket = {};  // null: it gets one
};

}  // namespace redline::serve
