// A conversation: the key-value cache, the tokens that it holds, and executables for one row and for many.
#pragma once

#include "run/model.h"

namespace redline {

struct SessionOptions {
    uint64_t context = 4096;  // tokens that the cache holds
    uint32_t batch = 512;     // tokens per step when many are fed
    uint32_t outputs = 1;     // rows of logits that one step can return (feed_all)
    CacheType cache = CacheType::f16;
    Record record = Record::replay;
    bool fuse = true;
};

// What the model and a session of these options take on a backend: lowered and sized there before anything is
// loaded.
Result<MemoryNeed> memory_need(const Model& model, Backend& backend, const SessionOptions& options);
// An error with the numbers, and with what would fit, when it is more than the device offers.
Status check_fits(const MemoryNeed& need, const Model& model, const DeviceInfo& device, uint64_t context);

// The first token that one at `position` looks back at in a cache.
uint64_t first_seen(const CacheInfo& cache, uint64_t position);

class Session {
public:
    // Errors name what does not fit: weights, cache and scratch beside what the device offers.
    static Result<Session> create(const Model& model, const SessionOptions& options);

    const Model& model() const { return *model_; }
    uint64_t context() const { return options_.context; }
    uint64_t position() const { return tokens_.size(); }
    const std::vector<Token>& tokens() const { return tokens_; }
    const MemoryNeed& memory() const { return memory_; }

    // Reads tokens in chunks of the batch size; afterwards logits() are those of the last one. More tokens
    // than the context has room for: an error, and nothing is read. Cancelled: an error; the chunks already
    // read stay.
    Status feed(std::span<const Token> tokens, const std::atomic<bool>* cancel = nullptr);
    // As feed, and gives the logits of every token: sink(index of the first row, logits (rows, vocab)).
    using LogitsSink = std::function<void(size_t first, std::span<const float> logits)>;
    Status feed_all(std::span<const Token> tokens, const LogitsSink& sink,
                    const std::atomic<bool>* cancel = nullptr);
    // (vocab rows of the model); of ids below Model::usable_vocab() only.
    std::span<const float> logits() const { return logits_; }
    // As feed of one token for who needs only the `count` best logits: where the device can pick them, best()
    // has them (the best first, perhaps more) and logits() nothing. With 0, or elsewhere, as feed.
    Status feed_for_best(Token token, uint32_t count, const std::atomic<bool>* cancel = nullptr);
    std::span<const Scored> best() const { return best_; }

    // Forgets all but the first `count` tokens and returns how many are left: none, where a cache that keeps
    // a window only has lost what the next token would look back at.
    uint64_t rewind(uint64_t count);
    // Makes room: keeps the first `keep` tokens, forgets the next `discard`, and reads the rest again, so
    // that what follows is exactly what a shorter conversation would have given.
    Status shift(uint64_t keep, uint64_t discard, const std::atomic<bool>* cancel = nullptr);

    // The caches and their tokens in a file, written whole or not at all; restore() refuses a file of another
    // model, cache type or layout, a damaged one, or one with more tokens than the context. Both take time
    // for gigabytes: `progress` is told of bytes, and a cancelled one is an error that changes nothing.
    Status save(const std::string& path, const Progress& progress = {},
                const std::atomic<bool>* cancel = nullptr) const;
    Status restore(const std::string& path, const Progress& progress = {},
                   const std::atomic<bool>* cancel = nullptr);

    // What is done when a step fails because the device was lost: it closes this session, opens the device
    // again, places the model there, and reopens. Then the session reads its tokens again and the step is
    // repeated; a loss meanwhile is an error.
    using Rescue = std::function<Status(Session&, const Error& loss)>;
    void set_rescue(Rescue rescue) { rescue_ = std::move(rescue); }
    // Gives up all that is on the device, and keeps the tokens.
    void close();
    Status reopen();

    // Runs one step with tracing (bench, taps).
    Status feed_traced(std::span<const Token> tokens, const TraceSink& sink);

private:
    Session() = default;
    Result<Executable*> executable(uint32_t rows);
    // Of the next tokens, the last of which have an output.
    Status step(const StepParams& params, uint32_t outputs, const TraceSink* trace);
    Status try_step(StepParams params, uint32_t outputs, const TraceSink* trace);
    Status read_again(const std::atomic<bool>* cancel);
    Status check_room(std::span<const Token> tokens) const;
    Status check_open() const;
    // Whether a next token at this position would find all that it looks back at.
    bool holds_all_before(uint64_t position) const;
    uint64_t first_held(const CacheInfo& cache) const;
    friend class CacheFile;

    const Model* model_ = nullptr;
    SessionOptions options_;
    MemoryNeed memory_;
    Rescue rescue_;
    std::vector<CacheInfo> cache_infos_;
    std::unique_ptr<CacheStore> caches_;  // null: closed
    std::unique_ptr<Executable> single_;  // one row
    std::unique_ptr<Executable> many_;    // options_.batch rows
    std::vector<Token> tokens_;
    uint64_t written_ = 0;  // tokens that steps may have written since the caches were empty, at most
    uint64_t oldest_ = 0;   // before it a restored cache with a window has nothing
    std::span<const float> logits_;
    std::span<const Scored> best_;
};

}  // namespace redline
