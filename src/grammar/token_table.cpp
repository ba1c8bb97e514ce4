#include "grammar/token_table.h"

#include "text/tokens/tokenizer.h"

#include <algorithm>

namespace redline {
namespace {

// The longest token of each trie. A string that may have 20 more characters is in a separate state only for
// the tries of longer tokens, and these are small.
constexpr uint32_t kLengths[] = {6, 10, 16, 32, std::numeric_limits<uint16_t>::max()};

TokenTrie make_trie(std::vector<int32_t> tokens, const std::vector<std::string>& pieces) {
    std::sort(tokens.begin(), tokens.end(), [&](int32_t a, int32_t b) {
        const int order = pieces[size_t(a)].compare(pieces[size_t(b)]);
        return order != 0 ? order < 0 : a < b;
    });
    TokenTrie trie;
    trie.nodes.push_back({0, 0, 0, 0});
    std::vector<uint32_t> path = {0};  // the nodes of the last token, by depth
    std::string_view last;
    const auto close = [&](size_t depth) {
        for (; path.size() > depth + 1; path.pop_back())
            trie.nodes[path.back()].next = uint32_t(trie.nodes.size());
    };
    for (size_t i = 0; i < tokens.size(); ++i) {
        const std::string_view piece = pieces[size_t(tokens[i])];
        const auto differs = std::mismatch(last.begin(), last.end(), piece.begin(), piece.end()).first;
        const size_t shared = size_t(differs - last.begin());
        close(shared);
        for (size_t depth = shared + 1; depth <= piece.size(); ++depth) {
            path.push_back(uint32_t(trie.nodes.size()));
            trie.nodes.push_back({0, uint32_t(i), uint16_t(depth), uint8_t(piece[depth - 1])});
        }
        trie.longest = std::max(trie.longest, uint32_t(piece.size()));
        last = piece;
    }
    close(0);
    trie.nodes[0].next = uint32_t(trie.nodes.size());
    trie.nodes.push_back({0, uint32_t(tokens.size()), 0, 0});
    trie.tokens = std::move(tokens);
    return trie;
}

}  // namespace

TokenTable TokenTable::create(const Tokenizer& tokenizer, size_t size) {
    TokenTable table;
    table.pieces_.resize(size);
    table.ends_.assign(size, false);
    std::vector<std::vector<int32_t>> by_length(std::size(kLengths));
    for (int32_t token = 0; size_t(token) < size; ++token) {
        table.ends_[size_t(token)] = tokenizer.is_end_of_generation(token);
        if (table.ends(token)) table.end_tokens_.push_back(token);
        const TokenType type = tokenizer.type(token);
        if (type == TokenType::control || type == TokenType::unknown || table.ends(token)) continue;
        std::string piece = tokenizer.piece(token);
        if (piece.empty() || piece.size() > std::numeric_limits<uint16_t>::max()) continue;
        const auto length = std::lower_bound(std::begin(kLengths), std::end(kLengths), piece.size());
        by_length[size_t(length - std::begin(kLengths))].push_back(token);
        table.pieces_[size_t(token)] = std::move(piece);
    }
    for (std::vector<int32_t>& tokens : by_length)
        if (!tokens.empty()) table.tries_.push_back(make_trie(std::move(tokens), table.pieces_));
    return table;
}

}  // namespace redline
