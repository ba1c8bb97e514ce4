#include "engine/session.h"

#include <algorithm>

namespace redline {

Result<Session> Session::create(const Model& model, const SessionOptions& options) {
    return create(RL_TRY(Engine::create(model, options)));
}

Result<Session> Session::create(std::unique_ptr<Engine> engine) {
    Sequence sequence = RL_TRY(engine->open_sequence());
    return Session(std::move(engine), std::move(sequence));
}

// After an error the tokens read before it stay, with their logits.
void Session::take_output() {
    const std::span<const float> all = engine_->output();
    logits_ = all.empty() ? all : all.last(model().config().vocab);
    best_ = engine_->best();
}

Status Session::step(std::span<const Token> tokens, const Engine::Wanted& wanted) {
    const Feed feed{sequence_.get(), tokens};
    RL_TRY(engine_->step({&feed, 1}, wanted));
    take_output();
    return {};
}

Status Session::feed(std::span<const Token> tokens, const std::atomic<bool>* cancel) {
    const Feed feed{sequence_.get(), tokens};
    const uint64_t before = position();
    const Status done = engine_->feed(
        {&feed, 1}, [](size_t, std::span<const float>) {}, cancel);
    if (position() > before) take_output();
    return done;
}

Status Session::feed_for_best(Token token, uint32_t count, const std::atomic<bool>* cancel) {
    return step({&token, 1}, {.best = count, .cancel = cancel});
}

Status Session::feed_rows(std::span<const Token> tokens, uint32_t count, const std::atomic<bool>* cancel) {
    rows_ = tokens.size();
    return step(tokens, {.outputs = uint32_t(tokens.size()), .best = count, .cancel = cancel});
}

void Session::choose_row(size_t row) {
    const size_t best = engine_->best().size() / rows_, logits = engine_->output().size() / rows_;
    best_ = engine_->best().subspan(row * best, best);
    logits_ = engine_->output().subspan(row * logits, logits);
}

Status Session::feed_all(std::span<const Token> tokens, const LogitsSink& sink,
                         const std::atomic<bool>* cancel) {
    const Feed all{sequence_.get(), tokens};
    RL_TRY(engine_->check({&all, 1}));
    for (size_t first = 0; first < tokens.size();) {
        const auto chunk =
            tokens.subspan(first, std::min<size_t>(tokens.size() - first, engine_->options().outputs));
        RL_TRY(step(chunk, {.outputs = uint32_t(chunk.size()), .cancel = cancel}));
        sink(first, engine_->output());
        first += chunk.size();
    }
    return {};
}

Status Session::feed_traced(std::span<const Token> tokens, const TraceSink& sink) {
    const uint32_t most = engine_->options().batch;
    if (tokens.size() > most) return error("a traced step takes at most {} tokens", most);
    return step(tokens, {.trace = &sink});
}

uint64_t Session::rewind(uint64_t count) {
    logits_ = {};
    best_ = {};
    return sequence_->rewind(count);
}

Status Session::shift(uint64_t keep, uint64_t discard, const std::atomic<bool>* cancel) {
    RL_CHECK(keep + discard <= position(), "shift of {} + {} in {} tokens", keep, discard, position());
    std::vector<Token> left = tokens();
    left.erase(left.begin() + int64_t(keep), left.begin() + int64_t(keep + discard));
    const uint64_t held = rewind(keep);
    if (held == left.size()) return {};
    return feed(std::span(left).subspan(held), cancel);
}

void Session::close() {
    logits_ = {};
    best_ = {};
    engine_->close();
}

Status Session::save(const std::string& path, const Progress& progress, const std::atomic<bool>* cancel,
                     std::string_view text) const {
    return engine_->save(*sequence_, path, progress, cancel, text);
}

Status Session::restore(const std::string& path, const Progress& progress, const std::atomic<bool>* cancel,
                        std::string* text) {
    const Status done = engine_->restore(*sequence_, path, progress, cancel, text);
    logits_ = {};
    best_ = {};
    return done;
}

}  // namespace redline
