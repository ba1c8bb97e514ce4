// SentencePiece BPE ("llama" in GGUF): neighbours are merged by the score of the token that they form;
// characters without a token become their bytes.
#pragma once

#include "text/tokens/merge.h"
#include "text/tokens/vocabulary.h"

#include <array>

namespace redline {

class Spm {
public:
    static Result<Spm> create(const Vocabulary& vocabulary, Token unknown, bool space_prefix,
                              std::vector<std::string>& warnings);

    // Appends the tokens of `text`, which has no special tokens; with a space before it if the model wants
    // that. Bytes that are not UTF-8 are kept, each as its byte token.
    void encode(const Vocabulary& vocabulary, std::string_view text, std::vector<Token>& out) const;
    bool space_prefix() const { return space_prefix_; }

private:
    Spm() = default;
    void encode_piece(const Vocabulary& vocabulary, std::string_view piece, Merger<float>& merger,
                      std::vector<Token>& out) const;

    std::array<Token, 256> byte_tokens_ = {};  // or the unknown token, or none
    bool space_prefix_ = true;
    bool by_words_ = true;  // no token has a space behind another character: words merge separately
};

}  // namespace redline
