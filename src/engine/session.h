// A conversation: an engine with one sequence, and the logits of its last token.
#pragma once

#include "engine/engine.h"

namespace redline {

using SessionOptions = EngineOptions;  // for one sequence

class Session {
public:
    // Errors name the sizes of weights, cache and scratch beside the memory that the device offers.
    static Result<Session> create(const Model& model, const SessionOptions& options);
    static Result<Session> create(std::unique_ptr<Engine> engine);

    const Model& model() const { return engine_->model(); }
    uint64_t context() const { return engine_->options().context; }
    uint64_t batch() const { return engine_->options().batch; }
    uint64_t position() const { return sequence_->position(); }
    const std::vector<Token>& tokens() const { return sequence_->tokens(); }
    const MemoryNeed& memory() const { return engine_->memory(); }
    const DeviceInfo& device() const { return engine_->device(); }

    // Reads tokens in chunks of the batch size; afterwards logits() are those of the last one. More tokens
    // than the context has room for are an error, and nothing is read. When cancelled, it returns an error;
    // the chunks already read stay.
    Status feed(std::span<const Token> tokens, const std::atomic<bool>* cancel = nullptr);
    // Like feed(), but returns the logits of every token: sink(index of the first row, logits (rows, vocab)).
    using LogitsSink = std::function<void(size_t first, std::span<const float> logits)>;
    Status feed_all(std::span<const Token> tokens, const LogitsSink& sink,
                    const std::atomic<bool>* cancel = nullptr);
    // (the model's vocab); only ids below Model::usable_vocab() are meaningful.
    std::span<const float> logits() const { return logits_; }
    // Like feed() of one token, for callers that need only the `count` best logits: where the device can pick
    // them, best() has them (the best first, perhaps more) and logits() is empty. With 0, or on other
    // devices, it is feed().
    Status feed_for_best(Token token, uint32_t count, const std::atomic<bool>* cancel = nullptr);
    std::span<const Scored> best() const { return best_; }
    // Likewise for several tokens, at most as many as a step returns rows of logits; choose_row() then makes
    // logits() and best() those behind one of them.
    Status feed_rows(std::span<const Token> tokens, uint32_t count,
                     const std::atomic<bool>* cancel = nullptr);
    void choose_row(size_t row);
    // Tokens of feed_rows() at most, so that they can be taken back one by one.
    size_t most_rows() const { return std::min(engine_->options().outputs, engine_->most_rewound()); }
    // See Engine::guess(). Both stay where they are when the session moves.
    Engine& engine() { return *engine_; }
    Sequence& sequence() { return *sequence_; }
    bool guesses() const { return engine_->guesses(); }
    // See rewinds_anywhere().
    bool rewinds() const { return engine_->rewinds(); }

    // See Sequence::rewind().
    uint64_t rewind(uint64_t count);
    // Makes room: keeps the first `keep` tokens, forgets the next `discard`, and reads the rest again, so
    // that the following text is exactly that of a shorter conversation.
    Status shift(uint64_t keep, uint64_t discard, const std::atomic<bool>* cancel = nullptr);

    // Saves the caches and their tokens to a file, written whole or not at all. restore() refuses a file of
    // another model, cache type or layout, a damaged one, or one with more tokens than the context. Both take
    // time for gigabytes: `progress` counts bytes, and cancelling is an error that changes nothing. `text` is
    // stored with them for the caller.
    Status save(const std::string& path, const Progress& progress = {},
                const std::atomic<bool>* cancel = nullptr, std::string_view text = {}) const;
    Status restore(const std::string& path, const Progress& progress = {},
                   const std::atomic<bool>* cancel = nullptr, std::string* text = nullptr);

    // Gives up all that is on the device, so that it can be opened again: the rescue is called by the next
    // step.
    void close();
    void set_rescue(Engine::Rescue rescue) { engine_->set_rescue(std::move(rescue)); }

    // Runs one step with tracing (bench, taps).
    Status feed_traced(std::span<const Token> tokens, const TraceSink& sink);

private:
    Session(std::unique_ptr<Engine> engine, Sequence sequence)
        : engine_(std::move(engine)), sequence_(std::make_unique<Sequence>(std::move(sequence))) {}
    Status step(std::span<const Token> tokens, const Engine::Wanted& wanted);
    void take_output();

    std::unique_ptr<Engine> engine_;
    std::unique_ptr<Sequence> sequence_;
    std::span<const float> logits_;
    std::span<const Scored> best_;
    size_t rows_ = 1;  // of the last feed_rows()
};

}  // namespace redline
