// A model that reads sequences: executables for one row and for many, and the caches that the sequences
// share.
#pragma once

#include "engine/sequence.h"
#include "places/pipeline.h"
#include "places/ranks.h"

#include <deque>

namespace redline {

struct EngineOptions {
    uint64_t context = 4096;  // most tokens of a sequence
    uint32_t batch = 512;     // tokens per step when many are fed
    uint32_t outputs = 1;     // rows of logits that one step can return, at least one per sequence
    CacheTypes cache = {};
    Record record = Record::replay;
    bool fuse = true;
    // A step of one row takes the kernels of several, so that GPUs, too, compute the rows of a sequence as
    // they would be alone: see AlikeRows.
    bool alike_rows = false;
    uint32_t sequences = 1;  // in a step at most
    uint32_t kept = 0;       // so many more may be open
    uint64_t pages = 0;      // of kPageRows tokens, shared by all; 0: enough for `sequences`, full
    uint32_t snapshots = 2;  // of the states of a sequence, that feed() takes for rewinding
    // Steps of at most so many tokens more than one of a sequence can be taken back token by token until the
    // next step, where layers keep states, too: see Sequence::rewind(). Of several sequences in a step, the
    // first ones that have so many such tokens together.
    uint32_t drafts = 0;
    // With drafts, the model whose MTP heads guess them, see Engine::guess(); null: this one, if it was read
    // with its heads. It is on the device that computes the logits.
    const Model* head = nullptr;
    // The places where the steps of the plan run; empty: where the model is placed. With placements the
    // engine loads the weights.
    std::vector<Placement> placements = {};
    // Instead of placements: the ranks that compute a part of each layer; empty: none. The engine loads their
    // weights.
    std::vector<RankPlace> ranks = {};
    // Told why the host adds the rows of ranks where their devices should do so.
    std::function<void(const std::string&)> ranks_note = {};
    Progress progress = {};  // of loading the weights of placements or ranks

    // True where the engine loads the weights.
    bool is_shared() const { return !placements.empty() || !ranks.empty(); }
    // Streamed prefill: in steps of at least so many rows the weights of layers on the CPU are copied to the
    // device, which computes with them: see places/stream.h. 0: never.
    uint32_t stream_rows = 0;
    StreamExpectation stream_expected = {};
};

// The plans that an engine of these options records: for one row, and for a whole batch.
Result<std::vector<Plan>> engine_plans(const Model& model, const EngineOptions& options);

// The plan whose steps placements name: for one row, and with no head beside it.
Result<Plan> placed_plan(const Model& model, const EngineOptions& options);
// The plans whose kernels a backend runs for such an engine: these, or those of its ranks.
Result<std::vector<Plan>> kernel_plans(const Model& model, const EngineOptions& options,
                                       const Backend& backend);

// The memory that the model and an engine of these options take on a backend, computed by lowering and sizing
// before anything is loaded.
Result<MemoryNeed> memory_need(const Model& model, Backend& backend, const EngineOptions& options);
// When the need exceeds the device's memory: an error with the numbers, and with a context that would fit.
Status check_fits(const MemoryNeed& need, const Model& model, const DeviceInfo& device, uint64_t context);

// The needs of a model on several backends, one for each of backends_of(placements), or for each rank; each
// must fit its device.
Result<std::vector<MemoryNeed>> memory_needs(const Model& model, const EngineOptions& options);

// The largest context, up to `most`, with which everything fits; below `most` a multiple of 256. 0: none
// fits.
Result<uint64_t> largest_context(const Model& model, Backend& backend, EngineOptions options, uint64_t most);

// A guess by an MTP head: at most so many tokens, which follow those that the sequence has read and `last`.
struct Guess {
    Sequence* sequence = nullptr;
    Token last = kNoToken;
    size_t most = 0;
    std::vector<Token> tokens = {};
};

// The next tokens of a sequence.
struct Feed {
    Sequence* sequence = nullptr;
    std::span<const Token> tokens;
    uint32_t outputs = 0;  // the last rows of a step that have an output; 0: as many as Engine::Wanted has
};

// Engines of a model may be used by several threads, an engine by one at a time: each step, opening, saving
// and closing takes Model::turns().
class Engine {
public:
    ~Engine();
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    // Errors name the sizes of weights, cache and scratch beside the memory that the device offers.
    static Result<std::unique_ptr<Engine>> create(const Model& model, const EngineOptions& options);

    const Model& model() const { return *model_; }
    const EngineOptions& options() const { return options_; }
    const MemoryNeed& memory() const { return memory_; }
    // The device that computes the logits.
    const DeviceInfo& device() const;
    // At how many places the plan runs. feed() has as many chunks of a long prompt computed at a time.
    size_t places() const { return std::max<size_t>(1, backends_of(options_.placements).size()); }
    // True where parts of prompts cost no more in a step with rows of other sequences than alone.
    bool mixes();

    // The pages of the caches without a window, or of those that have the fewest free ones.
    struct PageCount {
        uint64_t all = 0, free = 0;
    };
    PageCount pages() const;
    // How many of these pages some sequences have, each counted once.
    uint64_t pages_of(std::span<const Sequence* const> sequences) const;
    // True when there are pages for the feeds' tokens. A page that several of the feeds would write to counts
    // once for each, which is one too many.
    bool has_pages(std::span<const Feed> feeds) const;
    // See rewinds_anywhere().
    bool rewinds() const { return rewinds_anywhere(pool_->caches(), options_.context); }
    // The most tokens of a step that can be taken back to any of them.
    uint32_t most_rewound() const { return rewinds() ? options_.batch : options_.drafts + 1; }
    // True when the device was lost, so that nothing works before reopen().
    bool lost() const;

    // An error when as many sequences are open as the engine has room for.
    Result<Sequence> open_sequence();

    // Reads the tokens of all feeds: short feeds of several sequences together in a step, long ones in
    // separate steps. sink(index of the feed, logits of its last token) is called once for each, in any
    // order. Tokens that do not fit into a context or the pages are an error, and nothing is read. When
    // cancelled, it returns an error, and the tokens read so far stay.
    using LogitsSink = std::function<void(size_t feed, std::span<const float> logits)>;
    Status feed(std::span<const Feed> feeds, const LogitsSink& sink,
                const std::atomic<bool>* cancel = nullptr);

    // Checks that tokens fit into their contexts and are in the vocabulary.
    Status check(std::span<const Feed> feeds) const;

    // Runs one step, in which the last `outputs` rows of each feed have an output.
    struct Wanted {
        uint32_t outputs = 1;
        uint32_t best = 0;  // > 0: only so many best logits of each row, where the device can pick them
        const std::atomic<bool>* cancel = nullptr;
        const TraceSink* trace = nullptr;
    };
    Status step(std::span<const Feed> feeds, const Wanted& wanted);
    // The last step's (rows with an output, vocab); empty where best() has the wanted logits.
    std::span<const float> output() const { return output_; }
    // Those of one row with an output after the other, as many of each; empty where output() has all.
    std::span<const Scored> best() const { return best_; }

    // True when there is an MTP head.
    bool guesses() const { return head_ != nullptr; }
    // Has the head guess, or of several each a token, in turn. Tokens that they have not seen before they
    // read first. A sequence of which they know too little, or that has lost its device, gets no guess.
    Status guess(std::span<Guess> guesses, const std::atomic<bool>* cancel = nullptr);

    // Called when a step fails because the device was lost: it closes this engine, opens the device again,
    // places the model there, and reopens. Then the sequences of the step read their `tokens` again, others
    // before their next step; a second loss meanwhile is an error.
    using Rescue = std::function<Status(Engine& lost, uint64_t tokens, const Error& loss)>;
    void set_rescue(Rescue rescue) { rescue_ = std::move(rescue); }
    // Frees everything on the device; sequences keep their tokens.
    void close();
    Status reopen();
    // Reopens an engine of a split plan: `placements` are those of the options, with the reopened device in
    // place of the lost one. Its weights are loaded again.
    Status reopen(std::span<const Placement> placements, const Progress& progress);
    // Likewise of ranks.
    Status reopen(std::span<const RankPlace> ranks, const Progress& progress);

    // Saves and restores a sequence's cache rows and tokens: see Session.
    Status save(const Sequence& sequence, const std::string& path, const Progress& progress,
                const std::atomic<bool>* cancel, std::string_view text = {}) const;
    Status restore(Sequence& sequence, const std::string& path, const Progress& progress,
                   const std::atomic<bool>* cancel, std::string* text = nullptr);
    // The bytes of the file that save() would write, to be written by another thread.
    Result<std::vector<std::byte>> saved(const Sequence& sequence) const;
    uint64_t saved_bytes(const Sequence& sequence) const;

private:
    Engine() = default;
    Result<Executable*> executable(uint32_t rows);
    Status load();
    Status load_parts();
    void release();
    Status open_caches();
    Result<std::unique_ptr<CacheStore>> make_caches();
    Status check_open() const;
    Status try_step(std::span<const Feed> feeds, const Wanted& wanted);
    Status run(std::span<const Feed> feeds, const Wanted& wanted);
    // Appends the table rows that the model looks up for the tokens of the feeds.
    Status look_up(std::span<const Feed> feeds, std::vector<float>& out) const;
    Status read_again(Sequence& sequence, const std::atomic<bool>* cancel);
    // Assigns the pages that the feeds will write to.
    Status give_pages(std::span<const Feed> feeds);
    const CachePool::Pages* scarcest() const;
    Status copy_page(Cache cache, uint32_t from, uint32_t to);
    Status feed_alone(const Feed& feed, const std::atomic<bool>* cancel);
    // Steps of several places, each of which works on another one: see in_flight.cpp.
    Result<bool> flies(const Feed& feed);
    Status feed_in_flight(const Feed& feed, const std::atomic<bool>* cancel);
    Status begin(const Feed& chunk, const Wanted& wanted);
    Status finish();
    void take_back_begun();
    // The caches of the text's layers, which files hold.
    std::span<const CacheInfo> text_caches() const { return pool_->caches().first(text_caches_); }

    struct Begun;

    // The MTP heads: see head.cpp.
    struct HeadRows;
    Result<Executable*> head_executable(size_t which, uint32_t rows);
    uint64_t head_width() const { return head_->config().hidden_dim(); }
    Status keep_hidden(std::span<const Feed> feeds, std::span<const float> rows,
                       const std::atomic<bool>* cancel);
    static void compare_ahead(Sequence& sequence, uint64_t before, std::span<const Token> came);
    Status read_head(Sequence& sequence, size_t which, uint64_t leave, const std::atomic<bool>* cancel);
    Status run_head(const HeadRows& rows, const std::atomic<bool>* cancel);
    void took_rows(const HeadRows& rows);
    Result<bool> prepare_guess(Sequence& sequence, const std::atomic<bool>* cancel);
    Status guess_together(std::span<Guess* const> guesses, const std::atomic<bool>* cancel);
    Token likeliest(size_t output, size_t outputs) const;
    friend class CacheFile;

    const Model* model_ = nullptr;
    EngineOptions options_;
    bool looks_up_ = false;  // the plan has a Lookup
    MemoryNeed memory_;
    Rescue rescue_;
    std::optional<Places> places_;  // where the options place the plan
    std::optional<Ranks> ranks_;    // that the options divide the plan over
    std::shared_ptr<StreamWatch> stream_watch_;
    std::shared_ptr<CachePool> pool_;
    std::unique_ptr<CacheStore> caches_;        // null: closed
    uint64_t opened_ = 1;                       // how many times the caches were opened
    std::unique_ptr<Executable> single_;        // one row
    std::unique_ptr<Executable> many_;          // options_.batch rows
    Pipeline* pipeline_ = nullptr;              // many_, where several of its steps can be run
    std::deque<std::unique_ptr<Begun>> begun_;  // steps in flight, the first first
    const Model* head_ = nullptr;               // whose MTP heads guess
    size_t head_count_ = 0;                     // of these heads
    size_t text_caches_ = 0;                    // the first ones; behind them are the heads'
    struct HeadSteps {
        std::unique_ptr<Executable> single, many;  // likewise
    };
    std::vector<HeadSteps> head_steps_;  // of each head
    std::span<const float> output_;
    std::span<const Scored> best_;
    std::span<const float> hidden_;  // of a head's last step
};

}  // namespace redline
