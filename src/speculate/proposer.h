// A method of guessing how a text goes on.
#pragma once

#include "base/result.h"
#include "text/tokens/vocabulary.h"

#include <atomic>
#include <span>
#include <string_view>
#include <vector>

namespace redline {

// A text that is read but for its last token.
struct DraftText {
    std::span<const Token> read;
    Token last = kNoToken;

    size_t size() const { return read.size() + 1; }
    Token operator[](size_t i) const { return i < read.size() ? read[i] : last; }
};

class Proposer {
public:
    virtual ~Proposer() = default;
    // "ngram-simple", as llama.cpp's --spec-type has it.
    virtual std::string_view name() const = 0;
    // False when a guess takes no time to speak of.
    virtual bool computes() const { return true; }
    // At most `most` tokens; none where it has no guess.
    virtual Result<std::vector<Token>> propose(const DraftText& text, size_t most,
                                               const std::atomic<bool>* cancel) = 0;
};

}  // namespace redline
