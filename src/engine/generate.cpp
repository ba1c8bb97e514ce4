#include "engine/generate.h"

#include "engine/output_check.h"
#include "text/tokens/text_stream.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>

namespace redline {

namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

bool is_set(const std::atomic<bool>* flag) {
    return flag && flag->load(std::memory_order_relaxed);
}

int32_t window(uint64_t context) {
    return int32_t(std::min<uint64_t>(context, uint64_t(std::numeric_limits<int32_t>::max())));
}

// Turns tokens into text for the sink.
class TextOut {
public:
    TextOut(const std::vector<std::string>& stops, const TextSink& sink) : matcher_(stops), sink_(sink) {}

    void push(const std::string& piece) { give(matcher_.push(characters_.push(piece))); }
    void finish() {
        give(matcher_.push(characters_.finish()));
        if (!matcher_.matched()) give(matcher_.finish());
    }
    bool closed() const { return closed_; }
    const StopMatcher& matcher() const { return matcher_; }
    std::string take() { return std::move(text_); }

private:
    void give(const std::string& text) {
        if (text.empty() || closed_) return;
        text_ += text;
        closed_ = sink_ && !sink_(text);
    }

    TextStream characters_;
    StopMatcher matcher_;
    const TextSink& sink_;
    std::string text_;
    bool closed_ = false;
};

class Loop {
public:
    Loop(Session& session, Sampler& sampler, const GenerateOptions& options, const TextSink& sink,
         const std::atomic<bool>* cancel)
        : session_(session),
          sampler_(sampler),
          options_(options),
          cancel_(cancel),
          text_(options.stops, sink),
          watch_(session.model().tokenizer().end_of_generation()) {}

    Result<Generation> run() {
        std::optional<StopReason> reason = before_token();
        while (!reason) {
            reason = RL_TRY(sample());
            if (!reason) reason = before_token();
            if (!reason) reason = RL_TRY(read());
        }
        if (out_.first_token_seconds > 0.0) out_.decode_seconds = since(first_) - shift_seconds_;
        text_.finish();
        out_.reason = text_.matcher().matched() ? StopReason::stop_string : *reason;
        out_.stop = text_.matcher().match();
        out_.text = text_.take();
        return std::move(out_);
    }

private:
    using Reason = std::optional<StopReason>;

    Reason before_token() const {
        if (is_set(cancel_)) return StopReason::cancelled;
        if (sampler_.finished()) return StopReason::end_of_generation;
        if (options_.max_tokens >= 0 && out_.tokens.size() >= uint64_t(options_.max_tokens))
            return StopReason::max_tokens;
        return {};
    }

    Result<Token> choose() {
        if (!session_.best().empty()) return sampler_.sample(session_.best());
        return sampler_.sample(session_.logits().first(session_.model().usable_vocab()));
    }

    // How many tokens may still come, including this one; the last is never read. Empty: any number.
    std::optional<uint64_t> room() const {
        std::optional<uint64_t> room;
        if (options_.when_full == WhenFull::stop) room = session_.context() - session_.position() + 1;
        if (options_.max_tokens >= 0) {
            const uint64_t left = uint64_t(options_.max_tokens) - out_.tokens.size();
            room = std::min(room.value_or(left), left);
        }
        return room;
    }

    // Returns the chosen token, or one that leads to the end of the constraint when little room is left.
    Result<Token> in_time(Token chosen) {
        const std::optional<uint64_t> room = this->room();
        if (!room || *room == 0) return chosen;
        const Token token = RL_TRY(sampler_.in_time(chosen, *room - 1));
        if (token == chosen) return token;
        out_.hastened = true;
        sampler_.advance(token);
        return token;
    }

    Result<Token> next() {
        if (forced_.empty() && options_.forced) forced_ = options_.forced();
        if (forced_.empty()) return in_time(RL_TRY(choose()));
        const Token token = forced_.front();
        forced_.erase(forced_.begin());
        sampler_.advance(token);
        return token;
    }

    bool is_shown(Token token) const {
        const std::vector<Token>& shown = options_.shown;
        return options_.show_special || std::find(shown.begin(), shown.end(), token) != shown.end();
    }

    Status watch() {
        const size_t usable = session_.model().usable_vocab();
        RL_CHECK(!session_.best().empty() || session_.logits().size() >= usable,
                 "generate needs the logits of a prompt");
        const Token read = session_.tokens().back();
        if (!session_.best().empty()) return watch_.see(read, session_.best(), usable, session_.device());
        return watch_.see(read, session_.logits().first(usable), session_.device());
    }

    // Chooses a token and outputs it.
    Result<Reason> sample() {
        if (const Status sound = watch(); !sound) {
            out_.fault = sound.error().message;
            session_.rewind(0);
            return Reason(StopReason::broken);
        }
        token_ = RL_TRY(next());
        sampler_.accept(token_);
        if (out_.tokens.empty()) {
            first_ = Clock::now();
            out_.first_token_seconds = since(start_);
        }
        const Tokenizer& tokenizer = session_.model().tokenizer();
        if (tokenizer.is_end_of_generation(token_)) return Reason(StopReason::end_of_generation);
        out_.tokens.push_back(token_);
        if (options_.logprobs >= 0)
            out_.logprobs.push_back(token_logprobs(session_.logits().first(session_.model().usable_vocab()),
                                                   token_, size_t(options_.logprobs)));
        text_.push(tokenizer.piece_after(session_.tokens().back(), token_, is_shown(token_)));
        if (text_.matcher().matched()) return Reason(StopReason::stop_string);
        if (text_.closed()) return Reason(StopReason::sink_closed);
        return Reason();
    }

    // Reads the token, so that the next can be chosen.
    Result<Reason> read() {
        Status done;
        if (session_.position() >= session_.context()) {
            if (options_.when_full == WhenFull::stop) return Reason(StopReason::context_full);
            done = shift();
        }
        // At least two logits are needed to see how certain the model is.
        const uint32_t wanted = options_.logprobs >= 0 ? 0 : sampler_.best_wanted();
        const uint32_t best = wanted > 0 ? std::max(wanted, 2u) : 0;
        if (done) done = session_.feed_for_best(token_, best, cancel_);
        if (!done && is_set(cancel_)) return Reason(StopReason::cancelled);
        if (!done) return done.error();
        out_.steps++;
        out_.context_sum += session_.position();
        return Reason();
    }

    // Forgets the older half of the tokens that are not kept.
    Status shift() {
        const auto start = Clock::now();
        const uint64_t position = session_.position();
        const uint64_t bos = session_.model().tokenizer().adds_bos() ? 1 : 0;
        const uint64_t keep = std::min(std::max(options_.keep, bos), position - 1);
        const Status done = session_.shift(keep, std::max<uint64_t>(1, (position - keep) / 2), cancel_);
        shift_seconds_ += since(start);
        out_.shifts++;
        return done;
    }

    Session& session_;
    Sampler& sampler_;
    const GenerateOptions& options_;
    const std::atomic<bool>* cancel_;
    TextOut text_;
    OutputWatch watch_;
    Generation out_;
    Token token_ = kNoToken;
    std::vector<Token> forced_;
    const Clock::time_point start_ = Clock::now();
    Clock::time_point first_;  // when the first token came
    double shift_seconds_ = 0.0;
};

}  // namespace

std::string_view stop_reason_name(StopReason reason) {
    switch (reason) {
        case StopReason::end_of_generation:
            return "end_of_generation";
        case StopReason::max_tokens:
            return "max_tokens";
        case StopReason::stop_string:
            return "stop_string";
        case StopReason::context_full:
            return "context_full";
        case StopReason::cancelled:
            return "cancelled";
        case StopReason::sink_closed:
            return "sink_closed";
        case StopReason::broken:
            return "broken";
    }
    return "";
}

Result<std::shared_ptr<Constraint>> make_constraint(const Model& model, const Grammar& grammar) {
    return std::shared_ptr<Constraint>(
        RL_TRY(Constraint::create(grammar, model.tokenizer(), model.usable_vocab())));
}

Result<Sampler> make_sampler(const Model& model, SamplerOptions options, bool ignore_eos, uint64_t context,
                             std::shared_ptr<Constraint> constraint) {
    const Tokenizer& tokenizer = model.tokenizer();
    const int32_t usable = int32_t(model.usable_vocab());
    if (ignore_eos)
        for (const Token token : tokenizer.end_of_generation())
            if (token >= 0 && token < usable)
                options.logit_bias.emplace_back(token, -std::numeric_limits<float>::infinity());
    SamplerVocabulary vocabulary{usable, window(context), {}, std::move(constraint)};
    if (options.dry_multiplier > 0.0f)
        vocabulary.dry_breakers = RL_TRY(make_dry_breakers(
            options.dry_sequence_breakers, usable, [&](int32_t id) { return tokenizer.piece(id); },
            [&](std::string_view text) { return tokenizer.encode(text, {.add_special = false}); }));
    return Sampler::create(options, std::move(vocabulary));
}

TokenLogprobs token_logprobs(std::span<const float> logits, Token chosen, size_t count) {
    const double most = double(*std::max_element(logits.begin(), logits.end()));
    double sum = 0;
    for (const float logit : logits) sum += std::exp(double(logit) - most);
    const double all = most + std::log(sum);
    std::vector<Token> ids(logits.size());
    std::iota(ids.begin(), ids.end(), 0);
    count = std::min(count, ids.size());
    std::partial_sort(ids.begin(), ids.begin() + std::ptrdiff_t(count), ids.end(), [&](Token a, Token b) {
        return logits[size_t(a)] != logits[size_t(b)] ? logits[size_t(a)] > logits[size_t(b)] : a < b;
    });
    TokenLogprobs out{{chosen, double(logits[size_t(chosen)]) - all}, {}};
    for (size_t i = 0; i < count; ++i) out.top.push_back({ids[i], double(logits[size_t(ids[i])]) - all});
    return out;
}

Status check_prompt(std::span<const Token> prompt, uint64_t context) {
    if (prompt.empty())
        return error(
            "the prompt is empty and the model has no token to begin a text with: give it some text");
    if (prompt.size() > context)
        return error("the prompt has {} tokens, the context holds {}; choose a larger one with -c",
                     prompt.size(), context);
    return {};
}

Result<PromptResult> read_prompt(Session& session, Sampler& sampler, std::span<const Token> prompt,
                                 const std::atomic<bool>* cancel, const Progress& progress) {
    RL_TRY(check_prompt(prompt, session.context()));
    const std::vector<Token>& held = session.tokens();
    const auto differs = std::mismatch(held.begin(), held.end(), prompt.begin(), prompt.end()).first;
    PromptResult result;
    result.tokens = prompt.size();
    // At least one token is read, to get its logits.
    result.reused = std::min<uint64_t>(uint64_t(differs - held.begin()), prompt.size() - 1);
    result.reused = session.rewind(result.reused);
    for (const Token token : prompt) sampler.accept(token);
    const auto start = Clock::now();
    Status read;
    for (uint64_t at = result.reused; at < prompt.size(); at = session.position()) {
        if (progress) progress(at, prompt.size());
        read = session.feed(prompt.subspan(at, std::min(prompt.size() - at, session.batch())), cancel);
        if (!read) break;
        const Status sound = check_logits(session.logits(), session.device());
        if (!sound) session.rewind(0);
        if (!sound) return sound.error();
    }
    result.seconds = since(start);
    result.read = session.position() - result.reused;
    result.cancelled = is_set(cancel);
    if (!read && !result.cancelled) return read.error();
    return result;
}

Result<Generation> generate(Session& session, Sampler& sampler, const GenerateOptions& options,
                            const TextSink& sink, const std::atomic<bool>* cancel) {
    return Loop(session, sampler, options, sink, cancel).run();
}

}  // namespace redline
