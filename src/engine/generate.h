// From a prompt to text: reads a prompt into a session (reusing what its cache already holds), then samples
// token by token, streams whole characters, and stops for a stated reason.
#pragma once

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
    sink_closed,  // the receiver of the text wants no more
    broken        // what the device computes cannot be a model's: see Generation::fault
};
std::string_view stop_reason_name(StopReason reason);  // "end_of_generation", ...

// What happens when the context is full: stop, or forget half of the tokens after the kept ones.
enum class WhenFull : uint8_t { stop, shift };

struct GenerateOptions {
    int64_t max_tokens = -1;         // -1: until another reason
    std::vector<std::string> stops;  // the text ends before the first of them
    bool show_special = false;       // control tokens are written out
    std::vector<Token> shown;        // these are in any case
    // Asked before each token: if it gives tokens, they come next in place of what the model would choose.
    std::function<std::vector<Token>()> forced;
    WhenFull when_full = WhenFull::stop;
    uint64_t keep = 0;  // tokens at the start that a shift keeps; BOS is kept in any case
    // So many of the likeliest tokens are noted with each; -1: no probabilities at all.
    int32_t logprobs = -1;
};

// For make_sampler(). It may go from one sampler to the next, which begins it anew, but costs tens of
// milliseconds to make.
Result<std::shared_ptr<Constraint>> make_constraint(const Model& model, const Grammar& grammar);

// A sampler for the model's usable vocabulary. `ignore_eos` forbids the tokens that end a generation. Windows
// of -1 mean `context`. The text ends when the constraint allows nothing more.
Result<Sampler> make_sampler(const Model& model, SamplerOptions options, bool ignore_eos, uint64_t context,
                             std::shared_ptr<Constraint> constraint = {});

struct PromptResult {
    uint64_t tokens = 0;  // of the prompt
    uint64_t reused = 0;  // of those, already in the cache
    uint64_t read = 0;    // now: the rest, unless it was cancelled
    double seconds = 0.0;
    bool cancelled = false;
};

// A prompt that is empty, or has more tokens than the context, is an error.
Status check_prompt(std::span<const Token> prompt, uint64_t context);

// Makes the session hold exactly `prompt`: keeps the common prefix with its tokens, reads the rest, and
// leaves the logits of the last token. The sampler's penalties see the whole prompt. Errors are those of
// check_prompt(), of the device, and of check_logits() where a chunk of it ends. `progress` is told of
// tokens, the reused ones included.
Result<PromptResult> read_prompt(Session& session, Sampler& sampler, std::span<const Token> prompt,
                                 const std::atomic<bool>* cancel = nullptr, const Progress& progress = {});

// Probabilities are those of the model: the softmax of its logits, before any sampler.
struct TokenLogprobs {
    struct One {
        Token token;
        double logprob;
    };
    One chosen;
    std::vector<One> top;  // the likeliest first
};

// The chosen token's and the `count` best of these logits.
TokenLogprobs token_logprobs(std::span<const float> logits, Token chosen, size_t count);

struct Generation {
    std::string text;                     // valid UTF-8, as the sink got it
    std::vector<Token> tokens;            // sampled, without the one that ends the generation
    std::vector<TokenLogprobs> logprobs;  // one for each token, when asked for
    StopReason reason = StopReason::max_tokens;
    bool hastened = false;  // tokens were chosen so that the constraint is met within the limits
    std::string stop;       // the stop string found
    std::string fault;      // why the output is broken
    uint64_t steps = 0;     // tokens read since the first was sampled: the work of decode_seconds
    uint64_t shifts = 0;
    uint64_t context_sum = 0;          // tokens in the cache, added up over the steps
    double first_token_seconds = 0.0;  // from the call to the first token
    double decode_seconds = 0.0;       // from the first token to the end, without shifts
};

// Gets the text as it becomes certain; false: no more is wanted.
using TextSink = std::function<bool(std::string_view)>;

// Samples from the session's logits until a reason to stop. After it the session holds what was read: the
// last token sampled is not in the cache. An error of the sampler or the device ends it; text already given
// to the sink stays. Logits that OutputWatch refuses end it as StopReason::broken, and the session is then
// empty, as its caches may hold what is not finite.
Result<Generation> generate(Session& session, Sampler& sampler, const GenerateOptions& options,
                            const TextSink& sink, const std::atomic<bool>* cancel = nullptr);

}  // namespace redline
