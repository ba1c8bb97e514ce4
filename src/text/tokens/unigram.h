// SentencePiece Unigram ("t5" in GGUF): of all ways to cut a text into tokens, it takes the one with the
// largest sum of scores, the logarithms of probabilities. Characters without a token become their bytes.
#pragma once

#include "text/tokens/charsmap.h"
#include "text/tokens/vocabulary.h"

#include <array>

namespace redline {

struct UnigramOptions {
    bool space_prefix = false;         // a space goes before every text
    bool remove_extra_spaces = false;  // of consecutive spaces the first is kept; none at both ends
    CharsMap normalization;
};

class Unigram {
public:
    static Result<Unigram> create(const Vocabulary& vocabulary, Token unknown, UnigramOptions options,
                                  std::vector<std::string>& warnings);

    // Appends the tokens of `text`, which has no special tokens. Bytes that are not UTF-8 are kept, each as
    // its byte token; without byte tokens, consecutive unknown characters become one unknown token.
    void encode(const Vocabulary& vocabulary, std::string_view text, std::vector<Token>& out) const;
    bool space_prefix() const { return options_.space_prefix; }

private:
    // A trie of the tokens' texts. The children of a node are neighbours, sorted by byte.
    struct Node {
        uint32_t first = 0;  // index of the first child
        uint16_t children = 0;
        uint8_t byte = 0;
        Token token = kNoToken;  // the token that ends here
    };
    struct Path;

    Unigram() = default;
    void find_bytes(const Vocabulary& vocabulary, std::vector<std::string>& warnings);
    Status build(const Vocabulary& vocabulary, std::vector<std::string>& warnings);
    const Node* child(const Node& node, uint8_t byte) const;
    std::string normalize(std::string_view text) const;

    UnigramOptions options_;
    std::vector<Node> nodes_;   // the root first
    double unknown_score_ = 0;  // of a character without a token
    Token unknown_ = kNoToken;  // may be none
    std::array<Token, 256> byte_tokens_ = {};
    bool has_bytes_ = false;  // all 256 bytes have a token
};

// True when the scores are those of a Unigram vocabulary: logarithms, and not ranks as in SPM. Files made
// from one are nevertheless often marked "llama".
bool has_unigram_scores(const Vocabulary& vocabulary);

}  // namespace redline
