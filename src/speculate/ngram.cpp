#include "speculate/ngram.h"

#include <algorithm>

namespace redline {

// FNV-1a over the tokens before `end`.
uint64_t NgramProposer::key(const DraftText& text, size_t end) const {
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = end - match_; i < end; ++i) hash = (hash ^ uint32_t(text[i])) * 0x100000001b3u;
    return hash;
}

// Keys may collide, and a text that was rewound leaves ends of what it was before.
bool NgramProposer::same(const DraftText& text, size_t end) const {
    for (size_t i = 1; i <= match_; ++i)
        if (text[end - i] != text[text.size() - i]) return false;
    return true;
}

Result<std::vector<Token>> NgramProposer::propose(const DraftText& text, size_t most,
                                                  const std::atomic<bool>*) {
    std::vector<Token> guess;
    if (text.size() <= match_) return guess;
    if (indexed_ >= text.size()) {
        ends_.clear();
        indexed_ = 0;
    }
    for (size_t end = std::max<size_t>(indexed_ + 1, match_); end < text.size(); ++end)
        ends_[key(text, end)] = end;
    indexed_ = text.size() - 1;
    const auto found = ends_.find(key(text, text.size()));
    if (found == ends_.end() || !same(text, found->second)) return guess;
    for (size_t i = found->second; i < text.size() && guess.size() < most; ++i) guess.push_back(text[i]);
    return guess;
}

}  // namespace redline
