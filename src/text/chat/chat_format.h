// Turn markers of the chat formats. A conversation is rendered in parts of two kinds: the scaffold, in which
// markers are control tokens, and the texts of users and models, which are always tokenized as text. The
// format is recognised by the model's template and vocabulary.
#pragma once

#include "text/tokens/tokenizer.h"

namespace redline {

struct ChatStyle;

enum class Role : uint8_t { system, user, assistant };

struct Message {
    Role role = Role::user;
    std::string text;
};

struct ChatOptions {
    // For templates that state today's date, as they write it ("26 Jul 2024"); empty: the template's default.
    std::string date;
    // False: asks a model that thinks first to answer at once, if its template knows how.
    bool thinking = true;
};

class ChatFormat {
public:
    // Recognises the format of a model; an error (naming what is known) rather than a guess when it cannot.
    // Only a file without a template is judged by its vocabulary.
    static Result<ChatFormat> detect(const Metadata& metadata, const Tokenizer& tokenizer);
    static Result<ChatFormat> named(std::string_view name);
    static std::vector<std::string> names();

    std::string_view name() const;
    // The way it was recognised: by "the chat template", "the vocabulary" or "its name".
    std::string_view origin() const { return origin_; }
    // Sentences on parts of the model's template that are not written here.
    const std::vector<std::string>& notes() const { return notes_; }
    // True when system text has a turn for itself; else it is put before a user's text.
    bool has_system() const;
    // True when the header of an answer opens a <think> block, so that the answer begins inside it.
    bool opens_thinking(const ChatOptions& options = {}) const;
    // True when `ChatOptions::thinking = false` has an effect.
    bool can_skip_thinking() const { return !skip_thinking_.empty(); }

    // A whole conversation with BOS, which ends with the header that makes the assistant speak. The reasoning
    // (<think>...</think>) of earlier answers is left out, as templates do.
    std::vector<TextPart> render(const Tokenizer& tokenizer, const std::vector<Message>& messages,
                                 const ChatOptions& options = {}) const;
    std::vector<Token> encode(const Tokenizer& tokenizer, const std::vector<Message>& messages,
                              const ChatOptions& options = {}) const;

private:
    class Renderer;

    ChatFormat(const ChatStyle* style, std::string_view origin) : style_(style), origin_(origin) {}
    void read_template(const std::string& source);

    const ChatStyle* style_;
    std::string_view origin_;
    std::vector<std::string> notes_;
    std::optional<std::string> default_system_;  // the template's, for conversations without one
    std::string date_;                           // that the template states; empty: none
    std::string knowledge_date_;                 // stated before it
    std::string open_thinking_;                  // after the header of an answer
    std::string skip_thinking_;                  // the same when no thinking is wanted
    bool bos_ = false;
    bool trim_ = false;
    bool drop_reasoning_ = true;
    bool strip_lines_ = true;  // line ends between the reasoning and the answer are left out with it
};

}  // namespace redline
