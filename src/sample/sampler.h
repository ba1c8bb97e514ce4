// Chooses the next token from logits by llama.cpp's chain. Greedy is exact: the lowest id wins a tie. A fixed
// seed gives the same choices on every machine.
#pragma once

#include "base/result.h"
#include "base/scored.h"
#include "sample/dry.h"
#include "sample/parameters.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace redline {

class Constraint;

// The vocabulary as the sampler sees it, which does not depend on the tokenizer.
struct SamplerVocabulary {
    int32_t size = 0;
    int32_t context = 0;                   // tokens, for windows of -1
    std::vector<DryBreaker> dry_breakers;  // see make_dry_breakers; needed only for dry_multiplier > 0
    // Forbids tokens before the bias and the chain, from its start on. It serves one sampler at a time.
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
    // The same choice from so many of the best, in the order of comes_first().
    Result<int32_t> sample(std::span<const Scored> best);
    // Records a prompt or generated token for the penalties; mirostat learns, and the constraint goes on,
    // when it is the token just sampled.
    void accept(int32_t token);
    // The constraint goes on with a token of the text that was not sampled.
    void advance(int32_t token);
    // The token that replaces a sampled one so that the constraint can be met in `left` tokens behind it; see
    // Constraint::in_time().
    Result<int32_t> in_time(int32_t token, uint64_t left);
    bool finished() const;  // the constraint lets nothing more follow
    void reset();           // forgets the history and starts the random sequence again

private:
    struct State;
    explicit Sampler(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace redline
