// Guesses by looking up: the text goes on as it did after the last place with the same tokens.
#pragma once

#include "speculate/proposer.h"

#include <cstdint>
#include <unordered_map>

namespace redline {

class NgramProposer : public Proposer {
public:
    // `match`: tokens that have to be the same; the more, the fewer guesses and the better they are.
    explicit NgramProposer(uint32_t match) : match_(match) {}

    std::string_view name() const override { return "ngram-simple"; }
    bool computes() const override { return false; }
    Result<std::vector<Token>> propose(const DraftText& text, size_t most,
                                       const std::atomic<bool>* cancel) override;

private:
    uint64_t key(const DraftText& text, size_t end) const;
    bool same(const DraftText& text, size_t end) const;

    uint32_t match_;
    size_t indexed_ = 0;                         // ends of n-grams up to here are in `ends_`
    std::unordered_map<uint64_t, size_t> ends_;  // where an n-gram of this key ended last
};

}  // namespace redline
