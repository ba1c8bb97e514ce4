#include "engine/generate.h"

#include "engine/answer_writer.h"

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

class Loop {
public:
    Loop(Session& session, Sampler& sampler, const GenerateOptions& options, const TextSink& sink,
         const std::atomic<bool>* cancel)
        : session_(session),
          options_(options),
          sink_(sink),
          cancel_(cancel),
          writer_(session.model(), sampler, options),
          read_last_(session.tokens().empty() ? kNoToken : session.tokens().back()) {}

    Result<Generation> run() {
        Reason reason = before_token();
        while (!reason) {
            reason = RL_TRY(sample(room()));
            if (!reason) reason = before_token();
            if (!reason) reason = RL_TRY(read());
        }
        if (out_.first_token_seconds > 0.0) out_.decode_seconds = since(first_) - shift_seconds_;
        out_.reason = writer_.finish(*reason);
        give_text();
        out_.tokens = writer_.tokens();
        out_.logprobs = writer_.logprobs();
        out_.hastened = writer_.hastened();
        out_.stop = writer_.stop();
        out_.fault = writer_.fault();
        return std::move(out_);
    }

private:
    using Reason = AnswerWriter::Reason;

    Reason before_token() const {
        if (is_set(cancel_)) return StopReason::cancelled;
        return writer_.before_token();
    }

    std::optional<uint64_t> room_at(uint64_t position) const {
        if (options_.when_full == WhenFull::shift) return {};
        return session_.context() - position + 1;
    }
    std::optional<uint64_t> room() const { return room_at(session_.position()); }

    void give_text() {
        const std::string text = writer_.take_text();
        if (text.empty() || closed_) return;
        out_.text += text;
        closed_ = sink_ && !sink_(text);
    }

    // Chooses a token by the session's logits and outputs it.
    Result<Reason> sample(std::optional<uint64_t> room) {
        const size_t usable = session_.model().usable_vocab();
        const bool all = session_.best().empty();
        RL_CHECK(!all || session_.logits().size() >= usable, "generate needs the logits of a prompt");
        const AnswerScores scores = {read_last_,
                                     all ? session_.logits().first(usable) : std::span<const float>(),
                                     session_.best(), session_.device()};
        const Reason reason = RL_TRY(writer_.next(scores, room));
        if (reason == StopReason::broken) {
            session_.rewind(0);
            return reason;
        }
        if (out_.first_token_seconds == 0.0) {
            first_ = Clock::now();
            out_.first_token_seconds = since(start_);
        }
        give_text();
        if (!reason && closed_) return Reason(StopReason::sink_closed);
        return reason;
    }

    // Reads the token, so that the next can be chosen. A proposal that goes wrong ends with a token that is
    // chosen and not read.
    Result<Reason> read() {
        for (;;) {
            if (session_.position() >= session_.context()) {
                if (options_.when_full == WhenFull::stop) return Reason(StopReason::context_full);
                if (const Status done = shift(); !done) return stopped(done);
            }
            const Result<std::vector<Token>> drafts = propose();
            if (!drafts) return stopped(drafts.error());
            if (drafts.value().empty()) return read_one();
            bool chosen = false;
            const Reason reason = RL_TRY(verify(drafts.value(), chosen));
            if (reason || !chosen) return reason;
        }
    }

    Result<Reason> stopped(const Status& failed) const {
        if (is_set(cancel_)) return Reason(StopReason::cancelled);
        return failed.error();
    }

    Result<Reason> read_one() {
        const auto start = Clock::now();
        const Status done = session_.feed_for_best(writer_.last(), writer_.best_wanted(), cancel_);
        if (!done) return stopped(done);
        if (options_.drafter) options_.drafter->tell({0, 0, since(start)});
        count_read(session_.position());
        return Reason();
    }

    void count_read(uint64_t position) {
        read_last_ = writer_.last();
        out_.steps++;
        out_.context_sum += position;
    }

    // Penalties want more of the best logits with each token; a row has those that were enough at first.
    bool has_enough() const {
        const uint32_t wanted = writer_.best_wanted();
        return session_.best().empty() || (wanted > 0 && wanted <= session_.best().size());
    }

    Result<std::vector<Token>> propose() const {
        const uint64_t room = session_.context() - session_.position() - 1;
        uint64_t most = std::min<uint64_t>(session_.most_rows() - 1, room);
        if (options_.max_tokens >= 0)
            most = std::min(most, uint64_t(options_.max_tokens) - writer_.tokens().size());
        if (!options_.drafter || most == 0) return std::vector<Token>();
        return options_.drafter->propose(session_.tokens(), writer_.last(), size_t(most), cancel_);
    }

    // Reads the last token and the drafts in one step, and chooses tokens as long as they are the drafts.
    // Afterwards the session holds what was chosen; `chosen`: all but the last of it.
    Result<Reason> verify(const std::vector<Token>& drafts, bool& chosen) {
        std::vector<Token> tokens = {writer_.last()};
        tokens.insert(tokens.end(), drafts.begin(), drafts.end());
        const uint64_t before = session_.position();
        const uint32_t best = writer_.best_wanted(), enough = best > 0 ? best + uint32_t(drafts.size()) : 0;
        const auto start = Clock::now();
        if (const Status done = session_.feed_rows(tokens, enough, cancel_); !done) return stopped(done);
        DraftRound round = {drafts.size(), 0, since(start)};
        Reason reason;
        uint64_t read = 0;  // of the tokens, those whose row was of use
        for (; read < tokens.size(); ++read) {
            session_.choose_row(read);
            chosen = !has_enough();
            if (chosen) break;
            count_read(before + read + 1);
            if (read == drafts.size()) continue;  // the next token is chosen by this row
            reason = RL_TRY(sample(room_at(before + read + 1)));
            if (!reason) reason = before_token();
            chosen = reason || writer_.last() != drafts[read];
            if (!chosen) ++round.accepted;
            if (chosen) ++read;
            if (chosen) break;
        }
        if (chosen && reason != StopReason::broken) session_.rewind(before + read);
        out_.rounds++;
        out_.drafted += round.proposed;
        out_.accepted += round.accepted;
        options_.drafter->tell(round);
        return reason;
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
    const GenerateOptions& options_;
    const TextSink& sink_;
    const std::atomic<bool>* cancel_;
    AnswerWriter writer_;
    Token read_last_ = kNoToken;  // the token behind which the next one is chosen
    Generation out_;
    bool closed_ = false;  // the sink accepts no more
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
