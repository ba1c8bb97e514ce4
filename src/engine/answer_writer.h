// The tokens and the text of an answer, one token after another, from the logits of whoever runs the model.
#pragma once

#include "engine/generate.h"
#include "engine/output_check.h"
#include "text/tokens/text_stream.h"

namespace redline {

// The logits behind the last token that was read.
struct AnswerScores {
    Token read = kNoToken;
    std::span<const float> logits;  // of the usable vocabulary, or
    std::span<const Scored> best;   // the best of them
    const DeviceInfo& device;       // that computed them
};

class AnswerWriter {
public:
    using Reason = std::optional<StopReason>;

    // All have to outlive it. WhenFull and what belongs to it are the caller's business.
    AnswerWriter(const Model& model, Sampler& sampler, const GenerateOptions& options);

    // How many of the best logits are enough for the next token; 0: all are needed.
    uint32_t best_wanted() const;
    // A reason to end before another token is chosen.
    Reason before_token() const;
    // Chooses a token, or the reason to end. `room`: so many may still come, this one included, before the
    // context is full; empty: any number. A broken model is a reason, see fault().
    Result<Reason> next(const AnswerScores& scores, std::optional<uint64_t> room);
    // Text that came since the last call, and that will not change.
    std::string take_text() { return std::exchange(text_, {}); }
    // Releases the text that was held back, and says whether it was a stop string that ended the answer.
    StopReason finish(StopReason reason);

    Token last() const { return last_; }          // the token chosen last, the end of the answer included
    Token ended_by() const { return ended_by_; }  // the token that ended the answer; kNoToken: none did
    const std::vector<Token>& tokens() const { return tokens_; }  // without the one that ends the answer
    const std::vector<TokenLogprobs>& logprobs() const { return logprobs_; }
    const std::string& stop() const { return matcher_.match(); }  // the stop string found
    const std::string& fault() const { return fault_; }           // why the output is broken
    bool hastened() const { return hastened_; }                   // see Generation

private:
    bool may_end() const { return tokens_.size() >= options_.min_tokens; }
    bool ends(Token token) const;
    bool is_shown(Token token) const;
    Status watch(const AnswerScores& scores);
    Result<Token> choose(const AnswerScores& scores);
    Result<Token> in_time(Token chosen, std::optional<uint64_t> room);
    Result<Token> next_token(const AnswerScores& scores, std::optional<uint64_t> room);

    const Model& model_;
    Sampler& sampler_;
    const GenerateOptions& options_;
    OutputWatch watch_;
    TextStream characters_;
    StopMatcher matcher_;
    std::string text_;
    Token last_ = kNoToken, ended_by_ = kNoToken;
    std::vector<Token> tokens_;
    std::vector<TokenLogprobs> logprobs_;
    std::vector<Token> forced_;
    std::vector<float> unended_;  // logits without the ends of an answer
    std::string fault_;
    bool hastened_ = false;
};

}  // namespace redline
