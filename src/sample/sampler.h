// Chooses the next token from logits: llama.cpp's chain, names and defaults. Greedy is exact (lowest id wins
// a tie); a fixed seed gives the same choices on every machine.
#pragma once

#include "base/result.h"
#include "base/scored.h"
#include "sample/dry.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace redline {

class Constraint;

struct SamplerOptions {
    uint32_t seed = 0xFFFFFFFFu;  // 0xFFFFFFFF: take a random one (Sampler::seed() tells which)
    float temperature = 0.8f;     // <= 0: greedy, wherever and whether the chain names it
    float dynatemp_range = 0.0f;  // temperature +- range, by entropy; 0: off
    float dynatemp_exponent = 1.0f;
    int32_t top_k = 40;            // <= 0: off
    float top_p = 0.95f;           // 1: off
    float min_p = 0.05f;           // 0: off
    float typical_p = 1.0f;        // 1: off
    float top_n_sigma = -1.0f;     // <= 0: off
    float xtc_probability = 0.0f;  // 0: off
    float xtc_threshold = 0.1f;    // > 0.5: off
    int32_t min_keep = 0;
    int32_t repeat_last_n = 64;   // -1: the whole context, 0: off
    float repeat_penalty = 1.0f;  // 1: off
    float frequency_penalty = 0.0f;
    float presence_penalty = 0.0f;
    float dry_multiplier = 0.0f;  // 0: off
    float dry_base = 1.75f;       // < 1: off
    int32_t dry_allowed_length = 2;
    int32_t dry_penalty_last_n = 64;  // -1: the whole context, 0: off
    // For the caller, who makes SamplerVocabulary::dry_breakers of them.
    std::vector<std::string> dry_sequence_breakers = {"\n", ":", "\"", "*"};
    int32_t mirostat = 0;       // 0 off, 1, 2: after the bias only temperature and mirostat are applied
    float mirostat_tau = 5.0f;  // bits
    float mirostat_eta = 0.1f;
    std::vector<std::pair<int32_t, float>> logit_bias;  // added; -inf forbids the token
    // Order of the chain: names separated by ';', or one letter each ("edskypmxt").
    std::string samplers = "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature";
};

// What the sampler must know of the vocabulary, so that it does not depend on the tokenizer.
struct SamplerVocabulary {
    int32_t size = 0;
    int32_t context = 0;                   // tokens, for windows of -1
    std::vector<DryBreaker> dry_breakers;  // see make_dry_breakers; needed only for dry_multiplier > 0
    // Forbids tokens before all else, from its start on; of one sampler at a time.
    std::shared_ptr<Constraint> constraint = nullptr;
};

class Sampler {
public:
    // An unknown sampler name or an option out of range is an error that says what is accepted.
    static Result<Sampler> create(const SamplerOptions& options, SamplerVocabulary vocabulary);
    Sampler(Sampler&&) noexcept;
    Sampler& operator=(Sampler&&) noexcept;
    ~Sampler();

    uint32_t seed() const;
    bool greedy() const;  // no choice depends on chance, and the argmax of unmodified logits is the answer
    // The next token; an error when a logit is NaN or +inf, or all are -inf. Does not record it.
    Result<int32_t> sample(std::span<const float> logits);
    // How many of the best logits are enough for the same choice; 0: all are needed.
    uint32_t best_wanted() const;
    // The same of so many, in the order of comes_first().
    Result<int32_t> sample(std::span<const Scored> best);
    // Records a prompt or generated token for the penalties; mirostat learns, and the constraint goes on,
    // when it is the token just sampled.
    void accept(int32_t token);
    // The constraint goes on with a token of the text that was not sampled.
    void advance(int32_t token);
    // What comes in place of a sampled token so that the constraint can be met in `left` tokens behind it;
    // see Constraint::in_time().
    Result<int32_t> in_time(int32_t token, uint64_t left);
    bool finished() const;  // the constraint lets nothing more follow
    void reset();           // forgets the history and starts the random sequence again

private:
    struct State;
    explicit Sampler(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace redline
