// Writes a conversation for the model: by the chat template of the model file or of another
// file, or in one of the built-in formats.
#pragma once

#include "host/host_options.h"
#include "host/template_probe.h"
#include "places/model.h"
#include "text/chat/chat_template.h"
#include "text/chat/reasoning.h"

#include <memory>

namespace redline {

struct ChatWriterOptions {
    // The name of a built-in format, of a file or of one of the model file's templates, or a template's text;
    // empty: as the model file says.
    std::string choice;
    Json variables = Json::object();
    std::optional<bool> thinking;  // whether the model reasons before it answers; none: as the template does
    const SettingNames* names = &kProgramSettings;
    Notes* notes = &silent_notes();  // never null
};

// A conversation as the model reads it.
struct WrittenChat {
    std::vector<TextPart> parts;
    std::vector<Token> tokens;
};

class ChatWriter {
public:
    static Result<ChatWriter> create(const Model& model, const ChatWriterOptions& options);

    // Messages and functions as OpenAI's API has them; `tools` may be null. With functions a model file's
    // template for these is used. Where the file's template fails and a built-in format is known, that one is
    // used from then on, which is said.
    Result<WrittenChat> write(Json messages, const Json& tools);
    // How the model marks its reasoning, if it reasons.
    const std::optional<ReasoningMarks>& reasoning() const {
        return in_use() ? in_use()->reasoning : reasoning_;
    }
    bool wants_thinking() const { return thinking_.value_or(true); }
    // True where ChatWriterOptions::thinking has an effect.
    bool switches_thinking() const;
    // The budget of reasoning tokens that holds here: where the template cannot switch reasoning off, it is
    // cut at its beginning. -1: no limit, or nothing to limit.
    int64_t reasoning_budget(int64_t asked) const;
    // "the model's chat template", "chat format chatml (by its name)".
    const std::string& description() const { return description_; }
    // The text of the template that is used; empty for a built-in format.
    std::string template_text() const { return in_use() ? in_use()->text : ""; }

private:
    struct Source {
        std::string text;
        std::shared_ptr<const ChatTemplate> parsed;
        TemplateReads reads;
        std::optional<ReasoningMarks> reasoning;
        Json variables;
    };

    ChatWriter(const Model& model, const ChatWriterOptions& options)
        : tokenizer_(&model.tokenizer()),
          variables_(options.variables),
          thinking_(options.thinking),
          names_(options.names),
          notes_(options.notes) {}
    Status take_choice(const Metadata& metadata, const std::string& choice);
    Status take_templates(const Metadata& metadata);
    void take_format(const ChatFormat& format);
    Result<Source> read_template(const std::string& text) const;
    // Null: format_ is used.
    const Source* in_use() const {
        return with_tools_ && offers_ ? &*with_tools_ : template_ ? &*template_ : nullptr;
    }
    Result<WrittenChat> write_in_format(const Json& messages, const Json& tools);

    const Tokenizer* tokenizer_;
    Json variables_;
    std::optional<bool> thinking_;
    const SettingNames* names_;
    Notes* notes_;
    std::optional<Source> template_;
    std::optional<Source> with_tools_;         // in place of it where functions are offered
    bool offers_ = false;                      // functions, in what was written last
    std::optional<ReasoningMarks> reasoning_;  // of a format
    std::optional<ChatFormat> format_;
    std::string description_;
};

}  // namespace redline
