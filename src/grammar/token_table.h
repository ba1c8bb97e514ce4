// The vocabulary as a constraint needs it: the bytes of every token, as tries that are walked with a grammar,
// the tokens that end a text, and those that only their names allow.
#pragma once

#include "grammar/automaton.h"

#include <functional>
#include <string>

namespace redline {

class Tokenizer;

// The tokens of a range of lengths, in preorder: a node's subtree stands behind it, up to `next`.
struct TokenTrie {
    struct Node {
        uint32_t next;   // the node behind the subtree
        uint32_t first;  // the first of the tokens that end here; the next node's `first` is their end
        uint16_t depth;  // bytes from the root
        uint8_t byte;
    };
    std::vector<Node> nodes;  // nodes[0] is the root; a sentinel at the end holds the last `first`
    std::vector<int32_t> tokens;
    uint32_t longest = 0;  // bytes
};

class TokenTable {
public:
    // For the first `size` tokens; those without text (control tokens) are in no trie.
    static TokenTable create(const Tokenizer& tokenizer, size_t size);

    size_t size() const { return pieces_.size(); }
    // By length: the limits of repetitions matter only within so many characters.
    const std::vector<TokenTrie>& tries() const { return tries_; }
    const std::string& piece(int32_t token) const { return pieces_[size_t(token)]; }  // empty: no text
    bool ends(int32_t token) const { return ends_[size_t(token)]; }
    const std::vector<int32_t>& end_tokens() const { return end_tokens_; }

private:
    std::vector<std::string> pieces_;
    std::vector<bool> ends_;
    std::vector<int32_t> end_tokens_;
    std::vector<TokenTrie> tries_;
};

}  // namespace redline
