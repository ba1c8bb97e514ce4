#include "text/chat/tool_calls.h"

#include "text/chat/call_reader.h"
#include "text/chat/reasoning.h"

#include <algorithm>
#include <iterator>

namespace redline {

namespace {

struct Form {
    std::string_view mark;
    bool (CallReader::*read)();
    bool keeps_mark = false;  // the reader begins at the mark, not behind it
};

constexpr Form kForms[] = {
    {"<tool_call>", &CallReader::tagged},
    {"<function=", &CallReader::named_function},
    {"<minimax:tool_call>", &CallReader::minimax},
    {"<atem:function_calls>", &CallReader::atem},
    {"<｜DSML｜function_calls>", &CallReader::dsml_functions},
    {"<｜DSML｜tool_calls>", &CallReader::dsml_tools},
    {"<seed:tool_call>", &CallReader::seed},
    {"<tool_calls>", &CallReader::listed},
    {"<TOOLCALL>", &CallReader::nemotron},
    {"<|START_ACTION|>", &CallReader::command},
    {"<|tool_call|>", &CallReader::granite},
    {"<|tools_prefix|>", &CallReader::apertus},
    {"<|tool_calls|>", &CallReader::solar},
    {"<|python_start|>", &CallReader::pythonic},
    {"<|function_call|>", &CallReader::function_call},
    {"function call<|role_sep|>", &CallReader::function_call},
    {"<function name=\"", &CallReader::params},
    {"<|python_tag|>", &CallReader::python_tag},
    {"[TOOL_CALLS]", &CallReader::mistral},
    {"<|start|>assistant to=", &CallReader::harmony, true},
    {"<|start|>assistant<|channel|>commentary to=", &CallReader::harmony, true},
    {"<|channel|>commentary to=", &CallReader::harmony, true},
    {"<|channel|>analysis to=", &CallReader::harmony, true},
    {"to=functions.", &CallReader::harmony, true},
    {"<｜tool▁calls▁begin｜>", &CallReader::deepseek},
    {"<|tool_calls_section_begin|>", &CallReader::kimi},
    {"<|tool_call>", &CallReader::gemma},
    {"<|tool_call_start|>", &CallReader::pythonic},
};

// The first mark at or behind `at`; of two at one place the longer.
const Form* find_form(std::string_view text, size_t& at) {
    const Form* first = nullptr;
    size_t where = text.npos;
    for (const Form& form : kForms) {
        const size_t found = text.find(form.mark, at);
        if (found > where || found == text.npos) continue;
        if (found == where && first && form.mark.size() < first->mark.size()) continue;
        where = found;
        first = &form;
    }
    at = where;
    return first;
}

void note_slips(const CallReader& reader, ParsedAnswer& out) {
    if (!reader.slips().empty())
        out.notes.push_back(
            fmt::format("a call in the answer is mended: {}", fmt::join(reader.slips(), "; ")));
}

// The text in a block of code that is all of the answer. Qwen2.5-Coder writes its calls so.
std::optional<std::string_view> fenced(std::string_view text) {
    constexpr std::string_view kFence = "```";
    const size_t line = text.find('\n');
    if (!text.starts_with(kFence) || !text.ends_with(kFence) || line >= text.size() - kFence.size())
        return {};
    const std::string_view language = trimmed_text(text.substr(kFence.size(), line - kFence.size()));
    if (!language.empty() && language != "json") return {};
    return trimmed_text(text.substr(line, text.size() - kFence.size() - line));
}

// Llama 3.1 writes nothing but JSON, Llama 4 a list as in Python, Command R a list of actions; so may a model
// that was asked for such a text, hence the names.
bool read_bare(std::string_view answer, const Json& tools, ParsedAnswer& out) {
    std::string_view text = trimmed_text(answer);
    const std::optional<std::string_view> inner = fenced(text);
    if (inner) text = *inner;
    bool (CallReader::*read)() = nullptr;
    if (text.starts_with("{") || text.starts_with("[{")) {
        read = &CallReader::json_calls;
    } else if (text.starts_with("[")) {
        read = &CallReader::pythonic;
    } else if (text.starts_with("Action:")) {
        text.remove_prefix(7);
        read = &CallReader::action;
    } else {
        return false;
    }
    CallReader reader(text, 0, tools);
    if (inner) reader.slip("it stands in a block of code");
    if (!(reader.*read)() || !reader.ends_answer()) return false;
    const auto offered = [&](const ToolCall& call) { return find_function(tools, call.name) != nullptr; };
    if (!std::all_of(reader.calls().begin(), reader.calls().end(), offered)) return false;
    note_slips(reader, out);
    out.calls = std::move(reader.calls());
    return true;
}

}  // namespace

ParsedAnswer parse_tool_calls(std::string_view answer, const Json& tools) {
    ParsedAnswer out;
    size_t at = 0;
    size_t copied = 0;
    if (read_bare(answer, tools, out)) at = copied = answer.size();
    while (const Form* form = find_form(answer, at)) {
        CallReader reader(answer, form->keeps_mark ? at : at + form->mark.size(), tools);
        if (!(reader.*form->read)()) {
            out.notes.push_back(fmt::format("a call in the answer is left as text: what follows {} {}",
                                            form->mark, reader.problem()));
            at += form->mark.size();
            continue;
        }
        out.content += answer.substr(copied, at - copied);
        at = copied = reader.at();
        note_slips(reader, out);
        std::move(reader.calls().begin(), reader.calls().end(), std::back_inserter(out.calls));
    }
    out.content += answer.substr(copied);
    if (!out.calls.empty()) out.content = trimmed_text(out.content);
    for (size_t i = 0; i < out.calls.size(); ++i)
        if (out.calls[i].id.empty()) out.calls[i].id = fmt::format("call_{}", i + 1);
    return out;
}

std::vector<Token> tool_call_tokens(const Tokenizer& tokenizer) {
    static constexpr std::string_view kMarks[] = {"<tool_call>",
                                                  "</tool_call>",
                                                  "<arg_key>",
                                                  "</arg_key>",
                                                  "<arg_value>",
                                                  "</arg_value>",
                                                  "<minimax:tool_call>",
                                                  "</minimax:tool_call>",
                                                  "<|python_tag|>",
                                                  "[TOOL_CALLS]",
                                                  "[ARGS]",
                                                  "[CALL_ID]",
                                                  "<｜tool▁calls▁begin｜>",
                                                  "<｜tool▁call▁begin｜>",
                                                  "<｜tool▁sep｜>",
                                                  "<｜tool▁call▁end｜>",
                                                  "<｜tool▁calls▁end｜>",
                                                  "<|tool_calls_section_begin|>",
                                                  "<|tool_call_begin|>",
                                                  "<|tool_call_argument_begin|>",
                                                  "<|tool_call_end|>",
                                                  "<|tool_calls_section_end|>",
                                                  "<|tool_call>",
                                                  "<tool_call|>",
                                                  "<|\"|>",
                                                  "<|tool_call_start|>",
                                                  "<|python_start|>",
                                                  "<|python_end|>",
                                                  "<|START_ACTION|>",
                                                  "<|END_ACTION|>",
                                                  "<|tool_call|>",
                                                  "<|/tool_call|>",
                                                  "<seed:tool_call>",
                                                  "</seed:tool_call>",
                                                  "<tool_calls>",
                                                  "</tool_calls>",
                                                  "<TOOLCALL>",
                                                  "</TOOLCALL>",
                                                  "<|tools_prefix|>",
                                                  "<|tools_suffix|>",
                                                  "｜DSML｜",
                                                  "<|function_call|>",
                                                  "<|role_sep|>",
                                                  "<|tool_calls|>",
                                                  "<|tool_call:begin|>",
                                                  "<|tool_call:name|>",
                                                  "<|tool_call:args|>",
                                                  "<|tool_call:end|>"};
    return control_tokens_of(tokenizer, kMarks);
}

Json tool_calls_json(const std::vector<ToolCall>& calls) {
    Json all = Json::array();
    for (const ToolCall& call : calls)
        all.push_back(
            {{"id", call.id},
             {"type", "function"},
             {"function",
              {{"name", call.name},
               {"arguments", call.arguments.dump(-1, ' ', false, Json::error_handler_t::replace)}}}});
    return all;
}

}  // namespace redline
