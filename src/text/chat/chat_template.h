// The chat template that a model file carries: it writes conversations as the model was trained to read them.
// The texts of messages are never taken for control tokens.
#pragma once

#include "json/json.h"
#include "text/chat/chat_format.h"
#include "text/jinja/template.h"

#include <ctime>
#include <optional>

namespace redline {

struct TemplateInput {
    Json messages = Json::array();  // {"role": ..., "content": ...} each, with further keys for the template
    Json tools;                     // null: none
    Json variables = Json::object();  // further ones, such as enable_thinking
    bool answer = true;               // ends with the header that makes the assistant speak
    std::tm now = {};                 // for templates that state the date
};

// A model file's usual template, and others that it may have for some purpose.
inline constexpr std::string_view kUsualTemplate = "default", kToolTemplate = "tool_use";

// True when the file has the usual one; an empty one is none.
bool has_chat_template(const Metadata& metadata);
// The usual one first.
std::vector<std::string> chat_template_names(const Metadata& metadata);
// Empty: the file has no template of this name.
Result<std::string> chat_template_source(const Metadata& metadata, std::string_view name = kUsualTemplate);

class ChatTemplate {
public:
    // Errors say line and column.
    static Result<ChatTemplate> parse(std::string_view source);
    // Nothing when the file has none of this name.
    static Result<std::optional<ChatTemplate>> of(const Metadata& metadata,
                                                  std::string_view name = kUsualTemplate);

    // The arguments of calls are objects for the template, or texts where it can write only these. An error
    // says where in the template, too where it refuses the conversation.
    Result<std::vector<TextPart>> render(const Tokenizer& tokenizer, const TemplateInput& input) const;
    Result<std::vector<Token>> encode(const Tokenizer& tokenizer, const TemplateInput& input) const;

private:
    explicit ChatTemplate(jinja::Template parsed) : parsed_(std::move(parsed)) {}
    jinja::Template parsed_;
};

// The tokens of a rendered conversation, with BOS once, whether the template or the tokenizer puts it there.
std::vector<Token> encode_chat(const Tokenizer& tokenizer, std::span<const TextPart> parts);

Json messages_json(const std::vector<Message>& messages);

}  // namespace redline
