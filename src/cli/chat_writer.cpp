#include "cli/chat_writer.h"

#include "base/file.h"
#include "cli/command.h"
#include "cli/terminal/terminal.h"

#include <algorithm>
#include <filesystem>

namespace redline::cli {

static constexpr uint64_t kMostTemplate = uint64_t(1) << 24;

static bool is_format(const std::string& name) {
    const std::vector<std::string> names = ChatFormat::names();
    return std::find(names.begin(), names.end(), name) != names.end();
}

void add_template_options(Options& options, ChatWriterOptions& writer) {
    options.each(
        "--chat-format --chat-template", "NAME|FILE",
        "write the turns in this built-in format, or by the chat template in this file (default: by the "
        "template of the model file)",
        [&writer](const std::string& choice) -> Status {
            std::error_code unknown;
            if (!is_format(choice) && !std::filesystem::exists(choice, unknown))
                return error("names no file, and {}", ChatFormat::named(choice).error().message);
            writer.choice = choice;
            return {};
        });
    options.each("--chat-template-kwargs", "JSON",
                 "variables for the chat template, for example {\"enable_thinking\": false}",
                 [&writer](const std::string& text) -> Status {
                     TemplateInput::Json read = TemplateInput::Json::parse(text, nullptr, false);
                     if (!read.is_object())
                         return error(
                             "takes a JSON object, for example {{\"enable_thinking\": false}}, not \"{}\"",
                             text);
                     writer.variables = std::move(read);
                     return {};
                 });
}

void ChatWriter::take_format(const ChatFormat& format) {
    template_.reset();
    format_ = format;
    description_ = fmt::format("chat format {} (by {})", format.name(), format.origin());
}

static Result<ChatTemplate> read_template(const std::string& path) {
    const std::string source = RL_TRY(read_text_file(path, kMostTemplate));
    Result<ChatTemplate> parsed = ChatTemplate::parse(source);
    if (!parsed) return error("{}: {}", path, parsed.error().message);
    return parsed;
}

Result<ChatWriter> ChatWriter::create(const Model& model, const ChatWriterOptions& options) {
    ChatWriter writer(model, options);
    const auto check_variables = [&]() -> Status {
        if (options.variables.empty()) return {};
        return error(
            "--chat-template-kwargs means nothing to a built-in chat format, which has no variables");
    };
    if (is_format(options.choice)) {
        RL_TRY(check_variables());
        writer.take_format(RL_TRY(ChatFormat::named(options.choice)));
        return writer;
    }
    if (!options.choice.empty()) {
        writer.template_ = std::make_shared<const ChatTemplate>(RL_TRY(read_template(options.choice)));
        writer.description_ = fmt::format("the chat template in {}", options.choice);
        return writer;
    }
    const Metadata& metadata = model.gguf().metadata();
    const Result<ChatFormat> known = ChatFormat::detect(metadata, model.tokenizer());
    Result<std::optional<ChatTemplate>> own = ChatTemplate::of(metadata);
    if (own && own->has_value()) {
        writer.template_ = std::make_shared<const ChatTemplate>(std::move(**own));
        if (known) writer.format_ = known.value();
        writer.description_ = "the model's chat template";
        return writer;
    }
    if (!known)
        return error("{}; --chat-format NAME or --chat-template FILE chooses one",
                     own ? known.error().message : own.error().message);
    RL_TRY(check_variables());
    if (!own)
        note(fmt::format("{}; the built-in chat format {} is used instead", own.error().message,
                         known.value().name()));
    else
        say(fmt::format("the model has no chat template: the built-in chat format {} is used",
                        known.value().name()));
    writer.take_format(known.value());
    return writer;
}

Result<std::vector<Token>> ChatWriter::encode(const std::vector<Message>& messages) {
    if (template_) {
        TemplateInput input;
        input.messages = messages_json(messages);
        input.variables = variables_;
        const std::time_t now = std::time(nullptr);
        localtime_r(&now, &input.now);
        Result<std::vector<Token>> tokens = template_->encode(*tokenizer_, input);
        if (tokens || !format_) return tokens;
        note(fmt::format("{}; the built-in chat format {} is used instead", tokens.error().message,
                         format_->name()));
        take_format(*format_);
    }
    return format_->encode(*tokenizer_, messages);
}

}  // namespace redline::cli
