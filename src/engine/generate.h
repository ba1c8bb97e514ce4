// From a prompt to text: reads a prompt into a session (reusing what its cache already holds), then samples
// token by token, streams whole characters, and stops for a stated reason.
#pragma once

#include "engine/drafter.h"
#include "engine/session.h"
#include "grammar/constraint.h"
#include "sample/sampler.h"

#include <string>
#include <string_view>

namespace redline {

enum class StopReason : uint8_t {
    end_of_generation,  // the model ended its answer
    max_tokens,
    stop_string,
    context_full,
    cancelled,
    sink_closed,  // the receiver of the text accepts no more
    broken        // no sound model computes such logits: see Generation::fault
};
std::string_view stop_reason_name(StopReason reason);  // "end_of_generation", ...

// Actions when the context is full: stop, or forget half of the tokens after the kept ones.
enum class WhenFull : uint8_t { stop, shift };

struct GenerateOptions {
    int64_t max_tokens = -1;         // -1: until another reason
    uint64_t min_tokens = 0;         // no token that ends the generation is chosen before
    std::vector<std::string> stops;  // the text ends before the first stop string found
    std::vector<Token> stop_tokens;  // end the generation like those that the tokenizer names
    bool show_special = false;       // control tokens are written out
    std::vector<Token> shown;        // control tokens that are written out in any case
    // Called before each token: if it returns tokens, they replace the model's choice.
    std::function<std::vector<Token>()> forced;
    WhenFull when_full = WhenFull::stop;
    uint64_t keep = 0;  // tokens at the start that a shift keeps; BOS is kept in any case
    // Records so many of the likeliest tokens with each token; -1: no probabilities at all.
    int32_t logprobs = -1;
    // Proposes tokens that are read together with the last one. The text is that of the model's choices in
    // any case.
    Drafter* drafter = nullptr;
};

// Makes a constraint for make_sampler(), which takes tens of milliseconds. It can be passed from one sampler
// to the next, which resets it.
Result<std::shared_ptr<Constraint>> make_constraint(const Model& model, const Grammar& grammar);

// A sampler for the model's usable vocabulary. `ignore_eos` forbids the tokens that end a generation. Windows
// of -1 mean `context`. Generation ends when the constraint allows nothing more.
Result<Sampler> make_sampler(const Model& model, SamplerOptions options, bool ignore_eos, uint64_t context,
                             std::shared_ptr<Constraint> constraint = {});

struct PromptResult {
    uint64_t tokens = 0;  // in the prompt
    uint64_t reused = 0;  // tokens that were already in the cache
    uint64_t read = 0;    // tokens read now: the rest, unless cancelled
    double seconds = 0.0;
    bool cancelled = false;
};

// Returns an error when a prompt is empty or has more tokens than the context.
Status check_prompt(std::span<const Token> prompt, uint64_t context);

// Makes the session hold exactly `prompt`: keeps the common prefix with its tokens, reads the rest, and
// leaves the logits of the last token. The sampler's penalties see the whole prompt. Errors are those of
// check_prompt(), of the device, and of check_logits() at the end of a chunk. `progress` counts tokens, the
// reused ones included.
Result<PromptResult> read_prompt(Session& session, Sampler& sampler, std::span<const Token> prompt,
                                 const std::atomic<bool>* cancel = nullptr, const Progress& progress = {});

// Log probabilities by the softmax of the model's logits, before any sampler.
struct TokenLogprobs {
    struct One {
        Token token;
        double logprob;
    };
    One chosen;
    std::vector<One> top;  // the likeliest first
};

// The log probabilities of the chosen token and of the `count` best of these logits.
TokenLogprobs token_logprobs(std::span<const float> logits, Token chosen, size_t count);

struct Generation {
    std::string text;                     // valid UTF-8, as the sink got it
    std::vector<Token> tokens;            // sampled, without the one that ends the generation
    std::vector<TokenLogprobs> logprobs;  // one for each token, when asked for
    StopReason reason = StopReason::max_tokens;
    bool hastened = false;  // tokens were forced so that the constraint is completed within the limits
    std::string stop;       // the stop string found
    std::string fault;      // why the output is broken
    uint64_t steps = 0;     // tokens read since the first was sampled: the work of decode_seconds
    uint64_t rounds = 0;    // steps that read a proposal
    uint64_t drafted = 0;   // tokens that were proposed
    uint64_t accepted = 0;  // those that the model chose as well
    uint64_t shifts = 0;
    uint64_t context_sum = 0;          // tokens in the cache, added up over the steps
    double first_token_seconds = 0.0;  // from the call to the first token
    double decode_seconds = 0.0;       // from the first token to the end, without shifts
};

// Receives text that will not change any more; returns false to stop.
using TextSink = std::function<bool(std::string_view)>;

// Samples from the session's logits until a reason to stop. Afterwards the session holds all tokens that were
// read: the last token sampled is not in the cache. An error of the sampler or the device ends it; text
// already given to the sink stays. Logits that OutputWatch refuses end it as StopReason::broken, and the
// session is then empty, as its caches may hold values that are not finite.
Result<Generation> generate(Session& session, Sampler& sampler, const GenerateOptions& options,
                            const TextSink& sink, const std::atomic<bool>* cancel = nullptr);

}  // namespace redline
