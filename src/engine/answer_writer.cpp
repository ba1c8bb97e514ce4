#include "engine/answer_writer.h"

#include <algorithm>
#include <limits>

namespace redline {

static bool contains(const std::vector<Token>& tokens, Token token) {
    return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
}

AnswerWriter::AnswerWriter(const Model& model, Sampler& sampler, const GenerateOptions& options)
    : model_(model),
      sampler_(sampler),
      options_(options),
      watch_(model.tokenizer().end_of_generation()),
      matcher_(options.stops) {}

// At least two logits are needed to see how certain the model is.
uint32_t AnswerWriter::best_wanted() const {
    const uint32_t wanted = options_.logprobs >= 0 || !may_end() ? 0 : sampler_.best_wanted();
    return wanted > 0 ? std::max(wanted, 2u) : 0;
}

AnswerWriter::Reason AnswerWriter::before_token() const {
    if (sampler_.finished()) return StopReason::end_of_generation;
    if (options_.max_tokens >= 0 && tokens_.size() >= uint64_t(options_.max_tokens))
        return StopReason::max_tokens;
    return {};
}

bool AnswerWriter::ends(Token token) const {
    return model_.tokenizer().is_end_of_generation(token) || contains(options_.stop_tokens, token);
}

bool AnswerWriter::is_shown(Token token) const {
    return options_.show_special || contains(options_.shown, token);
}

Status AnswerWriter::watch(const AnswerScores& scores) {
    if (!scores.best.empty())
        return watch_.see(scores.read, scores.best, model_.usable_vocab(), scores.device);
    return watch_.see(scores.read, scores.logits, scores.device);
}

Result<Token> AnswerWriter::choose(const AnswerScores& scores) {
    if (!scores.best.empty()) return sampler_.sample(scores.best);
    if (may_end()) return sampler_.sample(scores.logits);
    unended_.assign(scores.logits.begin(), scores.logits.end());
    const auto forbid = [this](std::span<const Token> ends) {
        for (const Token token : ends)
            if (token >= 0 && size_t(token) < unended_.size())
                unended_[size_t(token)] = -std::numeric_limits<float>::infinity();
    };
    forbid(model_.tokenizer().end_of_generation());
    forbid(options_.stop_tokens);
    return sampler_.sample(unended_);
}

// Returns the chosen token, or one that leads to the end of the constraint when little room is left; the last
// token is never read.
Result<Token> AnswerWriter::in_time(Token chosen, std::optional<uint64_t> room) {
    if (options_.max_tokens >= 0) {
        const uint64_t left = uint64_t(options_.max_tokens) - tokens_.size();
        room = std::min(room.value_or(left), left);
    }
    if (!room || *room == 0) return chosen;
    const Token token = RL_TRY(sampler_.in_time(chosen, *room - 1));
    if (token == chosen) return token;
    hastened_ = true;
    sampler_.advance(token);
    return token;
}

Result<Token> AnswerWriter::next_token(const AnswerScores& scores, std::optional<uint64_t> room) {
    if (forced_.empty() && options_.forced) forced_ = options_.forced();
    if (forced_.empty()) return in_time(RL_TRY(choose(scores)), room);
    const Token token = forced_.front();
    forced_.erase(forced_.begin());
    sampler_.advance(token);
    return token;
}

Result<AnswerWriter::Reason> AnswerWriter::next(const AnswerScores& scores, std::optional<uint64_t> room) {
    if (const Status sound = watch(scores); !sound) {
        fault_ = sound.error().message;
        return Reason(StopReason::broken);
    }
    last_ = RL_TRY(next_token(scores, room));
    sampler_.accept(last_);
    if (ends(last_)) {
        ended_by_ = last_;
        return Reason(StopReason::end_of_generation);
    }
    tokens_.push_back(last_);
    if (options_.logprobs >= 0)
        logprobs_.push_back(token_logprobs(scores.logits, last_, size_t(options_.logprobs)));
    const std::string piece = model_.tokenizer().piece_after(scores.read, last_, is_shown(last_));
    text_ += matcher_.push(characters_.push(piece));
    if (matcher_.matched()) return Reason(StopReason::stop_string);
    return Reason();
}

StopReason AnswerWriter::finish(StopReason reason) {
    text_ += matcher_.push(characters_.finish());
    if (!matcher_.matched()) text_ += matcher_.finish();
    return matcher_.matched() ? StopReason::stop_string : reason;
}

}  // namespace redline
