#include "grammar/ending.h"

#include <algorithm>

namespace redline {
namespace {

// When more tokens than this are left, a text that has at most as many bytes is assumed to fit.
constexpr uint64_t kNear = 64;
// The assumed bytes per token of a long ending.
constexpr uint64_t kBytesPerToken = 16;
constexpr uint64_t kMostBytes = 65536;
constexpr uint64_t kNoTokens = uint64_t(1) << 40;

// Calls visit(token, bytes) for each token of a trie that the text begins with.
template <typename Visit>
void each_beginning(const TokenTrie& trie, std::string_view text, Visit visit) {
    uint32_t node = 0;
    for (size_t depth = 0; depth < text.size(); ++depth) {
        const uint32_t end = trie.nodes[node].next;
        for (++node; node < end && trie.nodes[node].byte != uint8_t(text[depth]);)
            node = trie.nodes[node].next;
        if (node >= end) return;
        const uint32_t first = trie.nodes[node].first;
        if (first < trie.nodes[node + 1].first) visit(trie.tokens[first], depth + 1);
    }
}

}  // namespace

std::optional<std::string> Ending::text(Automaton& automaton, Automaton::State state, uint64_t most) const {
    return texts_.complete(automaton, state,
                           std::min(kMostBytes, kBytesPerToken * std::min(most, kMostBytes)));
}

Ending::Tail Ending::split_at(std::string_view rest) const {
    Tail best{kNoTokens, -1};
    for (const TokenTrie& trie : table_.tries())
        each_beginning(trie, rest, [&](int32_t token, size_t bytes) {
            const uint64_t tokens = tails_[rest.size() - bytes].tokens + 1;
            if (tokens <= best.tokens && tokens < kNoTokens) best = {tokens, token};
        });
    return best;
}

// Splits a text into the fewest tokens, from its end backwards.
uint64_t Ending::split(std::string text) {
    const auto differs = std::mismatch(text.rbegin(), text.rend(), text_.rbegin(), text_.rend()).first;
    const size_t known = tails_.empty() ? 0 : size_t(differs - text.rbegin());
    tails_.resize(known + 1);
    text_ = std::move(text);
    for (size_t bytes = known + 1; bytes <= text_.size(); ++bytes)
        tails_.push_back(split_at(std::string_view(text_).substr(text_.size() - bytes)));
    return tails_.back().tokens;
}

bool Ending::fits(Automaton& automaton, Automaton::State state, uint64_t most) {
    std::optional<std::string> found = text(automaton, state, most);
    if (!found) return false;
    return (most > kNear && found->size() <= most) || split(std::move(*found)) <= most;
}

std::optional<std::vector<int32_t>> Ending::find(Automaton& automaton, Automaton::State state,
                                                 uint64_t most) {
    std::optional<std::string> found = text(automaton, state, most);
    if (!found || split(std::move(*found)) > most) return {};
    std::vector<int32_t> tokens;
    for (size_t rest = text_.size(); rest > 0; rest -= table_.piece(tokens.back()).size())
        tokens.push_back(tails_[rest].first);
    return tokens;
}

}  // namespace redline
