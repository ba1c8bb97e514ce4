// The token table of a model file: texts, types, scores, and the search for a text's id.
#pragma once

#include "base/result.h"
#include "gguf/metadata.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace redline {

using Token = int32_t;
constexpr Token kNoToken = -1;

enum class TokenType : uint8_t { undefined, normal, unknown, control, user_defined, unused, byte };

class Vocabulary {
public:
    // Reads tokenizer.ggml.{tokens,scores,token_type}. Tokens from `rows` on are ignored: the model has no
    // embedding for them. Arrays of unequal length and scores that are not numbers are errors.
    static Result<Vocabulary> read(const Metadata& metadata, size_t rows, std::vector<std::string>& warnings);
    Vocabulary(Vocabulary&&) = default;
    Vocabulary& operator=(Vocabulary&&) = default;

    size_t size() const { return texts_.size(); }
    bool contains(Token token) const { return token >= 0 && size_t(token) < size(); }
    const std::string& text(Token token) const { return texts_[size_t(token)]; }
    TokenType type(Token token) const { return types_[size_t(token)]; }
    void set_type(Token token, TokenType type) { types_[size_t(token)] = type; }
    bool has_types() const { return has_types_; }  // false: the file has none, and all count as normal
    bool has_scores() const { return !scores_.empty(); }
    float score(Token token) const { return scores_[size_t(token)]; }
    size_t longest() const { return longest_; }  // bytes of the longest text

    // The token whose text is exactly this, or kNoToken. Of several the last; an empty text is never found.
    Token find(std::string_view text) const;
    // The same for a piece of running text, which must never become a control, unknown or byte token.
    Token find_in_text(std::string_view text) const;

private:
    Vocabulary() = default;
    Status read_types(const Metadata& metadata, size_t count, std::vector<std::string>& warnings);
    Status read_scores(const Metadata& metadata, size_t count);
    void index(std::vector<std::string>& warnings);
    size_t slot(std::string_view text) const;

    std::vector<std::string> texts_;
    std::vector<TokenType> types_;
    std::vector<float> scores_;
    // Open addressing by text, a power of two and at most half full: the upper half of the hash above id + 1.
    std::vector<uint64_t> slots_;
    bool has_types_ = false;
    size_t longest_ = 0;
};

// The value of a text of the form <0xHH> (upper-case digits), else -1.
int byte_of_text(std::string_view text);

}  // namespace redline
