// Text to token ids and back, for the tokenizer that a GGUF file carries: SPM ("llama") and byte-level BPE ("gpt2").
#pragma once

#include "base/result.h"
#include "gguf/metadata.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace redline {

using Token = int32_t;
constexpr Token kNoToken = -1;

enum class TokenType : uint8_t { undefined, normal, unknown, control, user_defined, unused, byte };

struct TokenizeOptions {
    bool add_special = true;     // prepend BOS / append EOS as the file says
    bool parse_special = false;  // control tokens in the text become tokens; else they stay text
};

class Tokenizer {
public:
    static Result<Tokenizer> create(const Metadata& metadata);
    Tokenizer(Tokenizer&&) noexcept;
    Tokenizer& operator=(Tokenizer&&) noexcept;
    ~Tokenizer();

    size_t size() const;  // number of tokens in the vocabulary
    std::vector<Token> encode(std::string_view text, TokenizeOptions options = {}) const;
    // The bytes that a token stands for in running text; control tokens are empty unless `special`.
    std::string piece(Token token, bool special = false) const;
    std::string_view raw_text(Token token) const;  // the vocabulary entry as stored
    TokenType type(Token token) const;
    // The token whose stored text is exactly this, or kNoToken.
    Token find(std::string_view raw_text) const;

    Token bos() const;
    Token eos() const;
    bool adds_bos() const;
    bool is_end_of_generation(Token token) const;
    const std::vector<Token>& end_of_generation() const;
    // For `info`: "SPM", "BPE (llama-bpe)".
    std::string description() const;
    // What was unusual in the file and how it was taken; said once by the commands.
    const std::vector<std::string>& warnings() const;

private:
    struct State;
    explicit Tokenizer(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

// Turns a stream of token pieces into text that never splits a UTF-8 character.
class TextStream {
public:
    // Appends bytes and returns the text that is complete now; an incomplete character is held back.
    std::string push(std::string_view bytes);
    // The rest at the end: an incomplete character becomes U+FFFD.
    std::string finish();

private:
    std::string held_;
};

}  // namespace redline
