// A model that reads sequences: executables for one row and for many, and the caches that its sequences
// share.
#pragma once

#include "engine/sequence.h"
#include "places/pipeline.h"

namespace redline {

struct EngineOptions {
    uint64_t context = 4096;  // tokens that a sequence has room for
    uint32_t batch = 512;     // tokens per step when many are fed
    uint32_t outputs = 1;     // rows of logits that one step can return, at least one per sequence
    CacheType cache = CacheType::f16;
    Record record = Record::replay;
    bool fuse = true;
    uint32_t sequences = 1;  // that may be open at a time
    uint64_t pages = 0;      // of kPageRows tokens that they share; 0: room for all of them, full
    // Where the steps of the plan run; empty: where the model is placed. With these the engine loads the
    // weights.
    std::vector<Placement> placements = {};
    Progress progress = {};  // of that
    // Steps of so many rows and more have weights that placements leave to the CPU flow through the device,
    // which computes with them: see run/stream.h. 0: none do.
    uint32_t stream_rows = 0;
    StreamExpectation stream_expected = {};
};

// What such an engine records: for one row, and for as many as a step has.
Result<std::vector<Plan>> engine_plans(const Model& model, const EngineOptions& options);

// What the model and an engine of these options take on a backend: lowered and sized there before anything is
// loaded.
Result<MemoryNeed> memory_need(const Model& model, Backend& backend, const EngineOptions& options);
// An error with the numbers, and with what would fit, when it is more than the device offers.
Status check_fits(const MemoryNeed& need, const Model& model, const DeviceInfo& device, uint64_t context);

// Likewise, one for each of backends_of(placements), which has to fit its device.
Result<std::vector<MemoryNeed>> memory_needs(const Model& model, const EngineOptions& options);

// The most tokens of context, up to `most`, with which all of it fits; multiples of 256 below that. 0: none
// does.
Result<uint64_t> largest_context(const Model& model, Backend& backend, EngineOptions options, uint64_t most);

// What a sequence is to read next.
struct Feed {
    Sequence* sequence = nullptr;
    std::span<const Token> tokens;
};

class Engine {
public:
    // Errors name what does not fit: weights, cache and scratch beside what the device offers.
    static Result<std::unique_ptr<Engine>> create(const Model& model, const EngineOptions& options);

    const Model& model() const { return *model_; }
    const EngineOptions& options() const { return options_; }
    const MemoryNeed& memory() const { return memory_; }
    // Of a split plan, the one that computes the logits.
    const DeviceInfo& device() const;

    // An error when as many are open as the engine has room for.
    Result<Sequence> open_sequence();

    // Reads the tokens of all feeds, few of several sequences together in a step, long ones in steps of their
    // own. sink(index of the feed, logits of its last token) is called once for each, in any order. What does
    // not fit into a context or the pages is an error, and nothing is read. Cancelled: an error; what was
    // read stays.
    using LogitsSink = std::function<void(size_t feed, std::span<const float> logits)>;
    Status feed(std::span<const Feed> feeds, const LogitsSink& sink,
                const std::atomic<bool>* cancel = nullptr);

    // Whether they fit into their contexts, and tokens are of the vocabulary.
    Status check(std::span<const Feed> feeds) const;

    // One step: the last `outputs` rows of each feed have an output.
    struct Wanted {
        uint32_t outputs = 1;
        uint32_t best = 0;  // > 0: of one row the so many best logits, where the device can pick them
        const std::atomic<bool>* cancel = nullptr;
        const TraceSink* trace = nullptr;
    };
    Status step(std::span<const Feed> feeds, const Wanted& wanted);
    // Of the last step: (rows with an output, vocab), or nothing where best() has what was wanted.
    std::span<const float> output() const { return output_; }
    std::span<const Scored> best() const { return best_; }

    // What is done when a step fails because the device was lost: it closes this engine, opens the device
    // again, places the model there, and reopens. Then the sequences of the step read their `tokens` again,
    // others before their next step; a loss meanwhile is an error.
    using Rescue = std::function<Status(Engine& lost, uint64_t tokens, const Error& loss)>;
    void set_rescue(Rescue rescue) { rescue_ = std::move(rescue); }
    // Gives up all that is on the device; sequences keep their tokens.
    void close();
    Status reopen();
    // Likewise of a split plan: `placements` are those of the options, with the device that was opened again
    // in place of the lost one. Its weights are loaded again.
    Status reopen(std::span<const Placement> placements, const Progress& progress);

    // A sequence's rows of the caches and its tokens in a file: see Session.
    Status save(const Sequence& sequence, const std::string& path, const Progress& progress,
                const std::atomic<bool>* cancel, std::string_view text = {}) const;
    Status restore(Sequence& sequence, const std::string& path, const Progress& progress,
                   const std::atomic<bool>* cancel, std::string* text = nullptr);

private:
    Engine() = default;
    Result<Executable*> executable(uint32_t rows);
    Status load_parts();
    Result<std::unique_ptr<CacheStore>> make_caches();
    bool lost() const;
    Status check_open() const;
    Status try_step(std::span<const Feed> feeds, const Wanted& wanted);
    Status run(std::span<const Feed> feeds, const Wanted& wanted);
    // Appends what the model looks up for the tokens of the feeds.
    Status look_up(std::span<const Feed> feeds, std::vector<float>& out) const;
    Status read_again(Sequence& sequence, const std::atomic<bool>* cancel);
    // Pages that the feeds write to.
    Status give_pages(std::span<const Feed> feeds);
    Status copy_page(Cache cache, uint32_t from, uint32_t to);
    Status feed_alone(const Feed& feed, const std::atomic<bool>* cancel);
    friend class CacheFile;

    const Model* model_ = nullptr;
    EngineOptions options_;
    MemoryNeed memory_;
    Rescue rescue_;
    std::optional<Places> places_;  // where the options place the plan
    std::shared_ptr<StreamWatch> stream_watch_;
    std::shared_ptr<CachePool> pool_;
    std::unique_ptr<CacheStore> caches_;  // null: closed
    uint64_t opened_ = 1;                 // how often the caches were
    std::unique_ptr<Executable> single_;  // one row
    std::unique_ptr<Executable> many_;    // options_.batch rows
    std::span<const float> output_;
    std::span<const Scored> best_;
};

}  // namespace redline
