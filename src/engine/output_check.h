// Checks whether logits can be those of a working model: a device that does not compute, or a damaged file,
// gives meaningless text.
#pragma once

#include "base/scored.h"
#include "plan/backend.h"
#include "text/tokens/vocabulary.h"

namespace redline {

// An error when a logit is not finite, or all are the same, as from a device that computes nothing. It names
// a likely cause and a remedy.
Status check_logits(std::span<const float> logits, const DeviceInfo& device);

// Follows the logits of one text, token by token.
//
// In addition to check_logits() it reports a model that is certain of the same token kMostCertain times in a
// row: all others together have less than 2^-32 of the probability, and when that began another token had
// just been read. No healthy repetition does that: it begins with doubt, as nothing has been repeated yet,
// and training leaves more probability for the way out of a loop. Of all steps in which the demo model
// repeats a token, the most certain leaves the others 2^-23 (demo_test). The cause is activations that
// overflowed, or garbage, which outweighs the tokens that were read. A token that ends the text does not
// count: a model that is not allowed to end insists on it.
class OutputWatch {
public:
    static constexpr uint32_t kMostCertain = 32;

    // `ends`: tokens that end a generation.
    explicit OutputWatch(std::span<const Token> ends) : ends_(ends.begin(), ends.end()) {}

    // Takes the logits after a token was read: those of all tokens, or the best of `vocabulary`; two show how
    // certain the model is.
    Status see(Token read, std::span<const float> logits, const DeviceInfo& device);
    Status see(Token read, std::span<const Scored> best, size_t vocabulary, const DeviceInfo& device);

private:
    Status count(Token read, Token top, bool certain, const DeviceInfo& device);

    std::vector<Token> ends_;
    Token top_ = kNoToken;  // the last step's best token, if it was certain
    uint32_t certain_ = 0;  // steps in a row
};

}  // namespace redline
