// Speculation: someone proposes how a text goes on, one step reads all of the proposal, and the model's
// choices decide how much of it stays.
#pragma once

#include "base/result.h"
#include "text/tokens/vocabulary.h"

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

namespace redline {

// A step that read the last token and, behind it, a proposal.
struct DraftRound {
    uint64_t proposed = 0;  // tokens; 0: the step read the last token alone
    uint64_t accepted = 0;  // of these, from the first on, the model chose so many as well
    double seconds = 0.0;   // of the step
};

class Drafter {
public:
    virtual ~Drafter() = default;
    // Tokens that may follow those that were read and `last`, at most `most`; none where nothing is worth a
    // try.
    virtual Result<std::vector<Token>> propose(std::span<const Token> read, Token last, size_t most,
                                               const std::atomic<bool>* cancel) = 0;
    // Tells of each step what came of it.
    virtual void tell(const DraftRound& round) = 0;
};

}  // namespace redline
