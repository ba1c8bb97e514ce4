#include "cli/chat_writer.h"

#include "base/file.h"
#include "cli/command.h"
#include "cli/terminal/terminal.h"

#include <algorithm>
#include <filesystem>
#include <limits>

namespace redline::cli {

static constexpr uint64_t kMostTemplate = uint64_t(1) << 24;

static bool is_format(const std::string& name) {
    const std::vector<std::string> names = ChatFormat::names();
    return std::find(names.begin(), names.end(), name) != names.end();
}

void add_template_options(Options& options, ChatWriterOptions& writer) {
    options.each(
        "--chat-format --chat-template-file --chat-template", "NAME|FILE",
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
                     Json read = read_json(text);
                     if (!read.is_object())
                         return error(
                             "takes a JSON object, for example {{\"enable_thinking\": false}}, not \"{}\"",
                             text);
                     writer.variables = std::move(read);
                     return {};
                 });
}

void add_reasoning_options(Options& options, ChatWriterOptions& writer, ReasoningOptions& reasoning) {
    const auto take = [&](const std::string& text) { return take_thinking(text, writer, reasoning); };
    options.each(
        "--think", "[on|off|hide]",
        "whether a model that reasons does so before the answer, and whether that is shown: dim on a "
        "terminal, in a pipe on standard error; also low, medium, high where the template knows them "
        "(default: as the template does)",
        take);
    options.common("whether a reasoning model reasons");
    options.each("-rea --reasoning", "[on|off|auto]", "the same", take);
    options.flag("--hidethinking", "do not show the reasoning", reasoning.hide);
    options.each("--reasoning-effort", "LEVEL",
                 "how much it reasons, where the template knows levels: low, high, ...",
                 [&writer](const std::string& text) -> Status {
                     if (text != "default") writer.variables["reasoning_effort"] = text;
                     return {};
                 });
    options.number("--reasoning-budget",
                   "tokens of reasoning at most; 0: none, -1: as many as the model makes", reasoning.budget,
                   -1, std::numeric_limits<int64_t>::max());
}

Status take_thinking(const std::string& text, ChatWriterOptions& writer, ReasoningOptions& reasoning) {
    if (text == "on" || text == "true" || text == "hide") {
        writer.thinking = true;
        reasoning.hide = text == "hide";
    } else if (text == "off" || text == "false") {
        writer.thinking = false;
    } else if (text == "low" || text == "medium" || text == "high") {
        writer.thinking = true;
        writer.variables["reasoning_effort"] = text;
    } else if (text != "auto") {
        return error("takes on, off, hide, low, medium or high, not \"{}\"", text);
    }
    return {};
}

void ChatWriter::take_format(const ChatFormat& format) {
    template_.reset();
    format_ = format;
    if (!reasoning_) reasoning_ = ReasoningMarks::find(source_, *tokenizer_);
    description_ = fmt::format("chat format {} (by {})", format.name(), format.origin());
}

void ChatWriter::take_template(ChatTemplate parsed, const std::string& source) {
    template_ = std::make_shared<const ChatTemplate>(std::move(parsed));
    source_ = source;
    reasoning_ = ReasoningMarks::find(source, *tokenizer_);
    reads_ = probe_template(*template_, *tokenizer_, variables_);
    if (thinking_ && !reads_.thinking.empty() && !variables_.contains(reads_.thinking))
        variables_[reads_.thinking] = *thinking_;
}

bool ChatWriter::switches_thinking() const {
    if (!template_) return format_ && format_->can_skip_thinking();
    return !reads_.thinking.empty();
}

int64_t ChatWriter::reasoning_budget(int64_t asked) const {
    if (!reasoning_) return -1;
    return !wants_thinking() && !switches_thinking() ? 0 : asked;
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
        const std::string source = RL_TRY(read_text_file(options.choice, kMostTemplate));
        Result<ChatTemplate> parsed = ChatTemplate::parse(source);
        if (!parsed) return error("{}: {}", options.choice, parsed.error().message);
        writer.take_template(std::move(parsed).value(), source);
        writer.description_ = fmt::format("the chat template in {}", options.choice);
        return writer;
    }
    const Metadata& metadata = model.gguf().metadata();
    const Result<ChatFormat> known = ChatFormat::detect(metadata, model.tokenizer());
    Result<std::optional<ChatTemplate>> own = ChatTemplate::of(metadata);
    if (own && own->has_value()) {
        writer.take_template(std::move(**own), RL_TRY(metadata.text("tokenizer.chat_template")));
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

Result<WrittenChat> ChatWriter::write(Json messages, const Json& tools) {
    if (!template_) return write_in_format(messages, tools);
    // Only a few models know this name for the system's texts.
    if (!reads_.developer)
        for (Json& message : messages)
            if (message["role"] == "developer") message["role"] = "system";
    if (!tools.empty() && !reads_.tools)
        return error(
            "the chat template has no place for functions: leave --tools out, or name a template that has, "
            "with --chat-template FILE");
    TemplateInput input;
    input.messages = std::move(messages);
    input.tools = tools;
    input.variables = variables_;
    const std::time_t now = std::time(nullptr);
    localtime_r(&now, &input.now);
    Result<std::vector<TextPart>> parts = template_->render(*tokenizer_, input);
    if (parts) {
        std::vector<Token> tokens = encode_chat(*tokenizer_, parts.value());
        return WrittenChat{std::move(parts).value(), std::move(tokens)};
    }
    if (!format_) return parts.error();
    note(fmt::format("{}; the built-in chat format {} is used instead", parts.error().message,
                     format_->name()));
    take_format(*format_);
    return write_in_format(input.messages, tools);
}

Result<WrittenChat> ChatWriter::write_in_format(const Json& messages, const Json& tools) {
    if (!tools.empty())
        return error(
            "a built-in chat format offers no functions: leave --tools out, or give the model's own template "
            "with --chat-template FILE");
    std::vector<Message> all;
    for (const Json& message : messages) {
        const std::string role = message.value("role", "");
        const bool system = role == "system" || role == "developer";
        if (!system && role != "user" && role != "assistant")
            return error("a built-in chat format has no messages of the role \"{}\"", role);
        all.push_back({system           ? Role::system
                       : role == "user" ? Role::user
                                        : Role::assistant,
                       message.value("content", "")});
    }
    const ChatOptions options{.date = {}, .thinking = wants_thinking()};
    WrittenChat written;
    written.parts = format_->render(*tokenizer_, all, options);
    written.tokens = tokenizer_->encode(written.parts, false);
    return written;
}

}  // namespace redline::cli
