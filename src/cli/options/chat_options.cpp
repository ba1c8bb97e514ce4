#include "cli/options/chat_options.h"

#include "cli/surroundings.h"

#include <limits>

namespace redline::cli {

void add_template_options(Options& options, ChatWriterOptions& writer) {
    writer.notes = &terminal_notes();
    options.each("--chat-format", "NAME",
                 "write the turns in this built-in format (default: by the template of the model file)",
                 [&writer](const std::string& choice) -> Status {
                     const Result<ChatFormat> format = ChatFormat::named(choice);
                     if (!format) return format.error();
                     writer.choice = choice;
                     return {};
                 });
    options.each(
        "--chat-template-file --chat-template", "NAME|FILE|TEXT",
        "the same, or write them by one of the model file's templates, by the one in this file, or by "
        "this text of one",
        [&writer](const std::string& choice) -> Status {
            if (choice.empty()) return error("was given an empty name");
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

}  // namespace redline::cli
