// Turn markers of the chat formats, as token lists in which only the markers are control tokens: text that a user
// typed is always tokenized as text. The format is recognised by the model's template and vocabulary.
#pragma once

#include "text/tokenizer.h"

namespace redline {

enum class Role : uint8_t { system, user, assistant };

struct Message {
    Role role = Role::user;
    std::string text;
};

class ChatFormat {
public:
    // Recognises the format of a model; an error (naming what is known) rather than a guess when it cannot.
    static Result<ChatFormat> detect(const Metadata& metadata, const Tokenizer& tokenizer);
    static Result<ChatFormat> named(std::string_view name);
    static std::vector<std::string> names();

    std::string_view name() const;
    // Whether system text has a place of its own; where not, it is put before the first user text.
    bool has_system() const;
    // Tokens of a whole conversation, BOS included, ending with the header that makes the assistant speak.
    std::vector<Token> encode(const Tokenizer& tokenizer, const std::vector<Message>& messages) const;

private:
    explicit ChatFormat(const struct ChatStyle* style) : style_(style) {}
    const struct ChatStyle* style_;
};

}  // namespace redline
