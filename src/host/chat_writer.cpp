#include "host/chat_writer.h"

#include "base/file.h"
#include "host/fit_messages.h"
#include "text/tokens/unicode.h"

#include <algorithm>
#include <filesystem>

namespace redline {

static constexpr uint64_t kMostTemplate = uint64_t(1) << 24;

// Names have no tags of a template in them.
static bool is_template_text(const std::string& choice) {
    return choice.find("{{") != choice.npos || choice.find("{%") != choice.npos;
}

static bool is_file(const std::string& name) {
    std::error_code unknown;
    return std::filesystem::is_regular_file(name, unknown);
}

void ChatWriter::take_format(const ChatFormat& format) {
    if (in_use()) reasoning_ = in_use()->reasoning;
    template_.reset();
    with_tools_.reset();
    format_ = format;
    if (!reasoning_) reasoning_ = ReasoningMarks::find({}, *tokenizer_);
    description_ = fmt::format("chat format {} (by {})", format.name(), format.origin());
}

Result<ChatWriter::Source> ChatWriter::read_template(const std::string& text) const {
    Source source;
    source.text = text;
    source.parsed = std::make_shared<const ChatTemplate>(RL_TRY(ChatTemplate::parse(text)));
    source.reasoning = ReasoningMarks::find(text, *tokenizer_);
    source.variables = variables_;
    source.reads = probe_template(*source.parsed, *tokenizer_, variables_);
    if (thinking_ && !source.reads.thinking.empty() && !variables_.contains(source.reads.thinking))
        source.variables[source.reads.thinking] = *thinking_;
    return source;
}

bool ChatWriter::switches_thinking() const {
    if (!in_use()) return format_ && format_->can_skip_thinking();
    return !in_use()->reads.thinking.empty();
}

int64_t ChatWriter::reasoning_budget(int64_t asked) const {
    if (!reasoning()) return -1;
    return !wants_thinking() && !switches_thinking() ? 0 : asked;
}

Result<ChatWriter> ChatWriter::create(const Model& model, const ChatWriterOptions& options) {
    ChatWriter writer(model, options);
    const Metadata& metadata = model.gguf().metadata();
    if (options.choice.empty())
        RL_TRY(writer.take_templates(metadata));
    else
        RL_TRY(writer.take_choice(metadata, options.choice));
    if (!writer.template_ && !options.variables.empty())
        return error("{} means nothing to a built-in chat format, which has no variables",
                     options.names->template_variables);
    return writer;
}

// The format or template that the user named.
Status ChatWriter::take_choice(const Metadata& metadata, const std::string& choice) {
    if (const Result<ChatFormat> format = ChatFormat::named(choice)) {
        take_format(format.value());
        return {};
    }
    std::string text = choice;
    std::string where = "the text given as the chat template";
    if (is_template_text(choice)) {
        description_ = "the chat template given as text";
    } else if (is_file(choice)) {
        text = RL_TRY(read_text_file(choice, kMostTemplate));
        where = choice;
        description_ = fmt::format("the chat template in {}", choice);
    } else {
        const std::vector<std::string> names = chat_template_names(metadata);
        if (std::find(names.begin(), names.end(), choice) == names.end())
            return error("{}: there is no such file, the model file's templates are {}, and {}",
                         names_->with(names_->chat_template, printable(choice)),
                         names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")),
                         ChatFormat::named(choice).error().message);
        text = RL_TRY(chat_template_source(metadata, choice));
        where = description_ = fmt::format("the model's chat template \"{}\"", choice);
    }
    Result<Source> source = read_template(text);
    if (!source) return error("{}: {}", where, source.error().message);
    template_ = std::move(source).value();
    return {};
}

// The templates of the model file, or the format by which it is recognised.
Status ChatWriter::take_templates(const Metadata& metadata) {
    const Result<ChatFormat> known = ChatFormat::detect(metadata, *tokenizer_);
    std::string problem;
    const auto read = [&](std::string_view name) -> std::optional<Source> {
        const Result<std::string> text = chat_template_source(metadata, name);
        if (text && text.value().empty()) return {};
        Result<Source> source = text ? read_template(text.value()) : Result<Source>(text.error());
        if (source) return std::move(source).value();
        problem = name == kUsualTemplate ? "tokenizer.chat_template"
                                         : fmt::format("tokenizer.chat_template.{}", name);
        problem += ": " + source.error().message;
        return {};
    };
    with_tools_ = read(kToolTemplate);
    if (!problem.empty())
        notes_->note(fmt::format("{}; functions are offered by the usual template", problem));
    problem.clear();
    template_ = read(kUsualTemplate);
    if (template_) {
        if (known) format_ = known.value();
        description_ = "the model's chat template";
        return {};
    }
    if (!known)
        return error("{}; {} or {} chooses one", problem.empty() ? known.error().message : problem,
                     names_->with(names_->chat_format, "NAME"), names_->with(names_->chat_template, "FILE"));
    if (!problem.empty())
        notes_->note(
            fmt::format("{}; the built-in chat format {} is used instead", problem, known.value().name()));
    else
        notes_->inform(fmt::format("the model has no chat template: the built-in chat format {} is used",
                                   known.value().name()));
    take_format(known.value());
    return {};
}

Result<WrittenChat> ChatWriter::write(Json messages, const Json& tools) {
    offers_ = !tools.empty();
    const Source* source = in_use();
    if (!source) return write_in_format(messages, tools);
    if (source == (with_tools_ ? &*with_tools_ : nullptr))
        notes_->detail("the model's chat template \"tool_use\" is used, since functions are offered");
    // Only a few models know this name for the system's texts.
    if (!source->reads.developer)
        for (Json& message : messages)
            if (message["role"] == "developer") message["role"] = "system";
    if (!tools.empty() && !source->reads.tools)
        return error(
            "the chat template has no place for functions: leave {} out, or name a template that has, with {}",
            names_->tools, names_->with(names_->chat_template, "FILE"));
    fit_contents(messages, source->reads);
    TemplateInput input;
    input.messages = messages;
    input.tools = tools;
    input.variables = source->variables;
    const std::time_t now = std::time(nullptr);
    localtime_r(&now, &input.now);
    Result<std::vector<TextPart>> parts = render_fitted(*source->parsed, *tokenizer_, std::move(input));
    if (parts) {
        std::vector<Token> tokens = encode_chat(*tokenizer_, parts.value());
        return WrittenChat{std::move(parts).value(), std::move(tokens)};
    }
    if (!format_) return parts.error();
    notes_->note(fmt::format("{}; the built-in chat format {} is used instead", parts.error().message,
                             format_->name()));
    take_format(*format_);
    return write_in_format(messages, tools);
}

Result<WrittenChat> ChatWriter::write_in_format(const Json& messages, const Json& tools) {
    if (!tools.empty())
        return error(
            "a built-in chat format offers no functions: leave {} out, or give the model's template "
            "with {}",
            names_->tools, names_->with(names_->chat_template, "FILE"));
    std::vector<Message> all;
    for (const Json& message : messages) {
        const std::string role = message.value("role", "");
        const bool system = role == "system" || role == "developer";
        if (!system && role != "user" && role != "assistant")
            return error("a built-in chat format has no messages of the role \"{}\"", role);
        all.push_back({system           ? Role::system
                       : role == "user" ? Role::user
                                        : Role::assistant,
                       content_text(message.contains("content") ? message["content"] : Json())});
    }
    const ChatOptions options{.date = {}, .thinking = wants_thinking()};
    WrittenChat written;
    written.parts = format_->render(*tokenizer_, all, options);
    written.tokens = tokenizer_->encode(written.parts, false);
    return written;
}

}  // namespace redline
