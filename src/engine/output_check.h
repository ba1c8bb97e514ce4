// Whether logits can be a model's. A device that does not compute, or a damaged file, gives text that is
// none.
#pragma once

#include "base/scored.h"
#include "plan/backend.h"
#include "text/tokens/vocabulary.h"

namespace redline {

// An error when one is not finite, or all are the same, as a device gives that computes nothing. It names a
// likely cause and what to try.
Status check_logits(std::span<const float> logits, const DeviceInfo& device);

// Follows the logits of one text, token by token.
//
// Beside what check_logits() finds, an error when the model is certain of one and the same token kMostCertain
// times in a row: all others together have less than 2^-32 of the probability, and when that began another
// token had just been read. No healthy repetition does that. It begins with doubt, as nothing has been
// repeated yet, and training leaves more for the way out of a loop: of all steps in which the demo model
// repeats a token, the surest leaves others 2^-23 (demo_test). What does it are activations that overflowed
// or garbage, which dwarf what was read. The end of a text does not count: a model that is not allowed to
// end insists on it.
class OutputWatch {
public:
    static constexpr uint32_t kMostCertain = 32;

    // `ends`: tokens that end a generation.
    explicit OutputWatch(std::span<const Token> ends) : ends_(ends.begin(), ends.end()) {}

    // The logits after a token was read, of all tokens; or the best of `vocabulary`: two show how certain the
    // model is.
    Status see(Token read, std::span<const float> logits, const DeviceInfo& device);
    Status see(Token read, std::span<const Scored> best, size_t vocabulary, const DeviceInfo& device);

private:
    Status count(Token read, Token top, bool certain, const DeviceInfo& device);

    std::vector<Token> ends_;
    Token top_ = kNoToken;  // of the last step, if it was certain
    uint32_t certain_ = 0;  // steps in a row
};

}  // namespace redline
