// Text to token ids and back, for the tokenizer that a GGUF file carries: SPM ("llama"), byte-level BPE
// ("gpt2"), BPE over characters ("gemma4") and Unigram ("t5"). Encoding is const and may be done by several
// threads at once.
#pragma once

#include "base/result.h"
#include "gguf/metadata.h"
#include "text/tokens/text_stream.h"
#include "text/tokens/vocabulary.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace redline {

struct TokenizeOptions {
    bool add_special = true;     // prepend BOS / append EOS as the file says
    bool parse_special = false;  // control tokens in the text become tokens; false: they stay text
};

// A part of a text of mixed origin: control tokens are recognised only in the scaffold of a chat,
// user-defined tokens in any text.
struct TextPart {
    std::string text;
    bool scaffold = false;
};

class Tokenizer {
public:
    // Tokens from `embedding_rows` on are ignored: some files list more tokens than the model has rows for.
    static Result<Tokenizer> create(const Metadata& metadata,
                                    size_t embedding_rows = std::numeric_limits<size_t>::max());
    Tokenizer(Tokenizer&&) noexcept;
    Tokenizer& operator=(Tokenizer&&) noexcept;
    ~Tokenizer();

    size_t size() const;  // number of tokens in the vocabulary
    // Any bytes can be encoded. Byte-level BPE reads invalid UTF-8 as U+FFFD, SPM and Unigram keep its bytes.
    // A BOS at the beginning of the text is not recognised as one.
    std::vector<Token> encode(std::string_view text, TokenizeOptions options = {}) const;
    // The tokens of all parts joined: text on both sides of a border is merged as if there were none, and a
    // control token is found only if it lies entirely in scaffold.
    std::vector<Token> encode(std::span<const TextPart> parts, bool add_special) const;

    // The bytes that a token stands for in running text; control tokens are empty unless `special`. The
    // functions on one token accept any number: a number that is no token has no text and the undefined type.
    std::string piece(Token token, bool special = false) const;
    // The bytes of a token behind another token, kNoToken at the beginning: without the space that a Unigram
    // tokenizer puts before a text, and again behind each control and user-defined token.
    std::string piece_after(Token previous, Token token, bool special = false) const;
    // The pieces of a whole text, without the space that an SPM or Unigram tokenizer puts before it.
    std::string decode(std::span<const Token> tokens, bool special = false) const;
    std::string_view raw_text(Token token) const;  // the vocabulary entry as stored
    TokenType type(Token token) const;
    // The token whose stored text is exactly this, or kNoToken.
    Token find(std::string_view raw_text) const;

    Token bos() const;
    Token eos() const;
    bool adds_bos() const;
    bool adds_eos() const;
    bool is_end_of_generation(Token token) const;
    const std::vector<Token>& end_of_generation() const;  // ascending
    // For `info`: "SPM", "BPE (llama-bpe)".
    std::string description() const;
    // Unusual settings in the file and how they are treated; the commands print them once.
    const std::vector<std::string>& warnings() const;

private:
    struct State;
    explicit Tokenizer(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace redline
