// How the commands write a conversation for the model: by the chat template of the model file or of another
// file, or in one of the built-in formats.
#pragma once

#include "cli/options/options.h"
#include "run/model.h"
#include "text/chat_template.h"

#include <memory>

namespace redline::cli {

struct ChatWriterOptions {
    std::string choice;  // the name of a built-in format or of a file; empty: as the model file says
    TemplateInput::Json variables = TemplateInput::Json::object();
};

// --chat-template and --chat-template-kwargs.
void add_template_options(Options& options, ChatWriterOptions& writer);

class ChatWriter {
public:
    static Result<ChatWriter> create(const Model& model, const ChatWriterOptions& options);

    // Where the model file's own template fails and a built-in format is known, that one is used from then
    // on, which is said.
    Result<std::vector<Token>> encode(const std::vector<Message>& messages);
    // "the model's chat template", "chat format chatml (by its name)".
    const std::string& description() const { return description_; }

private:
    ChatWriter(const Model& model, const ChatWriterOptions& options)
        : tokenizer_(&model.tokenizer()), variables_(options.variables) {}
    void take_format(const ChatFormat& format);

    const Tokenizer* tokenizer_;
    TemplateInput::Json variables_;
    std::shared_ptr<const ChatTemplate> template_;  // null: format_ is used
    std::optional<ChatFormat> format_;
    std::string description_;
};

}  // namespace redline::cli
