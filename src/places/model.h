// A loaded model: its file, configuration, tokenizer, and weights placed on a backend.
#pragma once

#include "arch/arch.h"
#include "base/turns.h"
#include "plan/backend.h"
#include "plan/passes/shard.h"
#include "text/tokens/tokenizer.h"

namespace redline {

// A file's MTP heads: layers that predict further tokens from the hidden rows that the others leave.
enum class ReadHead : uint8_t { no, if_any, required };

struct LoadOptions {
    uint64_t context = 0;  // most tokens of sessions (longrope depends on it); 0: as trained
    Progress progress;     // bytes of weights placed
    ReadHead head = ReadHead::no;
};

class Model {
public:
    static Result<Model> load(const std::string& path, Backend& backend, const LoadOptions& options);
    // Reads everything but the weights, for `info`, tokenize and tests. plan() then works with the weights'
    // formats in the file; weights() does not. A file that holds an MTP head alone has no plan(), and is read
    // where the head is wanted.
    static Result<Model> inspect(const std::string& path, uint64_t context = 0, ReadHead head = ReadHead::no);
    // The same file for another backend, without reading it again. On a CPU place() then takes the weights
    // that this model has on one, which every CPU backend of the same options reads alike.
    Model twin() const;
    // Puts the weights on a backend; they replace those that were loaded before.
    Status place(Backend& backend, const Progress& progress);
    // Loads some of the weights that the plan uses, in this order, into a separate store on a backend.
    Result<std::unique_ptr<WeightStore>> load_some(std::span<const Weight> which, Backend& backend,
                                                   const Progress& progress = {}) const;
    // Loads parts of some of them, likewise.
    Result<std::unique_ptr<WeightStore>> load_slices(std::span<const WeightSlice> slices, Backend& backend,
                                                     const Progress& progress) const;
    // Overwrites weights of a store with these: see Backend::refill().
    Status refill(std::span<const Weight> which, Backend& backend, WeightStore& store,
                  std::span<const uint32_t> at) const;
    // Gives the weights up, so that the backend can go; no session may be open.
    void unload() {
        weights_.reset();
        beside_.reset();
        backend_ = nullptr;  // plans are no longer made for it
    }

    const Gguf& gguf() const { return *gguf_; }
    const Arch& arch() const { return *arch_; }
    const Config& config() const { return *config_; }
    const Tokenizer& tokenizer() const { return *tokenizer_; }
    Backend& backend() const { return *backend_; }
    WeightStore& weights() const { return *weights_; }
    // Engines of several threads use the backend in turns: it has one queue, and one kernel cache.
    Turns& turns() const { return *turns_; }
    // Sentences about parts of the file that are not used.
    const std::vector<std::string>& notes() const { return resolved_->notes; }
    // The weights that the plan uses, as they are in the file.
    std::span<const WeightInfo> file_weights() const { return resolved_->weights; }
    // The place of each of file_weights() in the file.
    std::span<const ResolvedWeights::Source> weight_sources() const { return resolved_->sources; }
    // Bytes of all weights as this backend stores them.
    uint64_t weight_bytes(const Backend& backend) const;
    // Ids below this exist both in the tokenizer and in the embedding.
    uint32_t usable_vocab() const;
    // Identifies the model's content for saved caches: a hash of its metadata, its tensor directory, and up
    // to 4 KiB of each tensor, which are read from the file.
    Result<uint64_t> fingerprint() const;

    // The rows that a step looks up for text[begin] and the tokens behind it: StepParams::lookups.
    Result<std::vector<float>> lookups(std::span<const Token> text, size_t begin) const;
    // How many tokens before another its lookups depend on.
    size_t lookup_reach() const { return resolved_->ngrams ? resolved_->ngrams->reach() : 0; }

    // `head`: the plan leaves hidden rows to the head of this model, whose caches it has behind those of the
    // text.
    Result<Plan> plan(uint32_t max_rows, uint32_t max_outputs, const CacheSizing& sizing,
                      const Model* head = nullptr) const;

    // How many MTP heads the file has that can guess, whether they were read or not.
    size_t offered_heads() const { return offered_heads_; }
    bool offers_head() const { return offered_heads_ > 0; }
    // How many it was read with.
    size_t heads() const { return heads_.size(); }
    const Config& head_config(size_t which) const { return *heads_[which]; }
    bool has_head() const { return !heads_.empty(); }
    // Forgets the heads; before place(), of a model that is more than these.
    Status leave_out_head();
    // True when the file holds nothing but MTP heads.
    bool is_head() const { return has_head() && heads_.front() == config_; }
    // The plan of a head. The caches of all heads are behind those of the plan of `text`, with which it
    // shares a store.
    Result<Plan> head_plan(size_t which, uint32_t max_rows, uint32_t max_outputs, const CacheSizing& sizing,
                           const Model& text) const;

private:
    Model() = default;
    Status read(const std::string& arch, uint64_t context, ReadHead head);
    Status read_heads(const std::string& arch, uint64_t context);
    Status resolve(std::span<const std::shared_ptr<const Config>> heads);
    Result<std::vector<CacheInfo>> head_caches(const CacheSizing& sizing, const Model& text) const;
    Result<Plan> head_plan_behind(size_t which, uint32_t max_rows, uint32_t max_outputs,
                                  const CacheSizing& sizing, std::vector<CacheInfo> caches) const;
    PlanBuilder builder(uint32_t max_rows, uint32_t max_outputs, const CacheSizing& sizing) const;
    Result<Plan> named(Result<Plan> plan) const;

    std::shared_ptr<const Gguf> gguf_;
    const Arch* arch_ = nullptr;
    std::shared_ptr<const Config> config_;
    std::vector<std::shared_ptr<const Config>> heads_;  // of MTP heads; empty: they were not read
    size_t offered_heads_ = 0;
    std::shared_ptr<const Tokenizer> tokenizer_;
    std::shared_ptr<ResolvedWeights> resolved_;
    Backend* backend_ = nullptr;
    std::shared_ptr<WeightStore> weights_;
    std::shared_ptr<WeightStore> beside_;  // of the model that this is a twin of; null: not to be taken
    std::unique_ptr<Turns> turns_ = std::make_unique<Turns>();
};

}  // namespace redline
