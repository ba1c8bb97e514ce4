#include "text/tool_calls.h"

#include "text/loose_value.h"
#include "text/reasoning.h"

#include <algorithm>
#include <optional>

namespace redline {

namespace {

constexpr std::string_view kSpaces = " \t\r\n";

std::string_view trimmed(std::string_view text) {
    text.remove_prefix(std::min(text.find_first_not_of(kSpaces), text.size()));
    return text.substr(0, text.find_last_not_of(kSpaces) + 1);
}

// A value between marks stands on lines of its own; these line ends are not a part of it.
std::string_view without_outer_lines(std::string_view text) {
    if (text.starts_with('\n')) text.remove_prefix(1);
    if (text.ends_with('\n')) text.remove_suffix(1);
    return text;
}

// Discarded where the text is no JSON, or nested so deep that what goes through it could exhaust the stack.
Json parsed(std::string_view text) {
    const bool nested = text.starts_with('{') || text.starts_with('[');
    if (nested && json_end(text, 0) != text.size()) return Json(Json::value_t::discarded);
    return read_json(text);
}

// The functions that are offered, whether each stands in {"type": "function", "function": ...} or alone.
const Json* find_function(const Json& tools, std::string_view name) {
    if (!tools.is_array()) return nullptr;
    for (const Json& tool : tools) {
        const bool wrapped = tool.is_object() && tool.contains("function") && tool["function"].is_object();
        const Json& function = wrapped ? tool["function"] : tool;
        if (function.is_object() && function.contains("name") && function["name"] == name) return &function;
    }
    return nullptr;
}

// A cursor over the answer. Each read_...() expects its mark to be behind it, and returns whether it found
// whole calls; it leaves the cursor behind them.
class CallReader {
public:
    CallReader(std::string_view text, size_t at, const Json& tools) : text_(text), at_(at), tools_(tools) {}

    size_t at() const { return at_; }
    std::vector<ToolCall>& calls() { return calls_; }
    const std::string& problem() const { return problem_; }

    // <tool_call>: JSON (Hermes, Qwen), <function=...> (Qwen3-Coder), or a name and <arg_key>s (GLM).
    bool tagged() {
        constexpr std::string_view kClose = "</tool_call>";
        skip_spaces();
        bool read = false;
        if (rest().starts_with("{") || rest().starts_with("["))
            read = json_calls();
        else if (take("<function="))
            read = named_function();
        else
            read = keyed_arguments();
        skip_spaces();
        // The end of the answer closes it, too.
        return read && (take(kClose) || at_ == text_.size() || refuse("has no </tool_call> behind it"));
    }

    // <function=NAME>, its name not yet read, with parameters in marks or as JSON.
    bool named_function() {
        const std::string_view name = until(">");
        skip_spaces();
        Json arguments = Json::object();
        if (rest().starts_with("{")) {
            const std::optional<Json> read = json();
            if (!read) return false;
            arguments = *read;
        } else if (!parameters("<parameter=", ">", "</parameter>", name, arguments)) {
            return false;
        }
        skip_spaces();
        return (take("</function>") || refuse("has no </function> behind it")) &&
               add(name, std::move(arguments));
    }

    // <minimax:tool_call> with <invoke name="..."> in it.
    bool invocations() {
        while (skip_spaces(), take("<invoke name=\"")) {
            const std::string_view name = until("\">");
            Json arguments = Json::object();
            if (!parameters("<parameter name=\"", "\">", "</parameter>", name, arguments)) return false;
            skip_spaces();
            if (!take("</invoke>")) return refuse("has no </invoke> behind it");
            if (!add(name, std::move(arguments))) return false;
        }
        return take("</minimax:tool_call>") ? !calls_.empty()
                                            : refuse("has no </minimax:tool_call> behind it");
    }

    // Llama 3.1: JSON objects with ";" between, or NAME.call(key="value").
    bool python_tag() {
        skip_spaces();
        if (rest().starts_with("{")) return json_calls();
        const std::string_view name = until(".call(");
        if (name.empty() || name.find_first_of(kSpaces) != name.npos)
            return refuse("holds neither JSON nor NAME.call(...)");
        std::optional<Json> arguments = read_loose_arguments(text_, at_, ')');
        return arguments ? add(name, std::move(*arguments)) : refuse("has arguments that cannot be read");
    }

    // Mistral: a list of objects, or NAME[CALL_ID]ID[ARGS]{...}, each behind a mark of its own.
    bool mistral() {
        skip_spaces();
        if (rest().starts_with("[{")) return json_calls();
        const size_t brace = rest().find('{');
        std::string_view head = rest().substr(0, std::min(brace, rest().size()));
        if (brace == rest().npos) return refuse("has no arguments");
        at_ += brace;
        const auto cut = [&head](std::string_view mark) {
            const size_t begin = head.find(mark);
            if (begin == head.npos) return std::string_view();
            const std::string_view tail = trimmed(head.substr(begin + mark.size()));
            head = head.substr(0, begin);
            return tail;
        };
        cut("[ARGS]");
        const std::string_view id = cut("[CALL_ID]");
        std::optional<Json> arguments = json();
        return arguments && add(trimmed(head), std::move(*arguments), std::string(id));
    }

    // Harmony: the cursor stands at the header of a message.
    bool harmony() {
        const std::string_view header = until("<|message|>");
        const size_t to = header.find("to=");
        std::string_view name = header.substr(std::min(to + 3, header.size()));
        name = name.substr(0, name.find_first_of(" \t\r\n<"));
        if (name.starts_with("functions.")) name.remove_prefix(10);
        skip_spaces();
        std::optional<Json> arguments = json();
        if (!arguments) return false;
        skip_spaces();
        for (const std::string_view end : {"<|call|>", "<|end|>"})
            if (take(end)) break;
        return add(name, std::move(*arguments));
    }

    // DeepSeek: function<sep>NAME and JSON in a block of code (V3, R1), or NAME<sep>JSON (V3.1).
    bool deepseek() {
        constexpr std::string_view kSep = "<｜tool▁sep｜>";
        while (skip_spaces(), take("<｜tool▁call▁begin｜>")) {
            std::string_view name = trimmed(until(kSep));
            const bool old = name == "function";
            if (old) name = trimmed(until("```json"));
            skip_spaces();
            std::optional<Json> arguments = json();
            if (!arguments) return false;
            skip_spaces();
            if (old && !take("```")) return refuse("has no end of its block of code");
            if (!take("<｜tool▁call▁end｜>")) return refuse("has no <｜tool▁call▁end｜> behind it");
            if (!add(name, std::move(*arguments))) return false;
        }
        take("<｜tool▁calls▁end｜>");
        return !calls_.empty() || refuse("holds no call");
    }

    // Kimi: functions.NAME:NUMBER is the call's id.
    bool kimi() {
        while (skip_spaces(), take("<|tool_call_begin|>")) {
            const std::string_view id = trimmed(until("<|tool_call_argument_begin|>"));
            std::string_view name = id.substr(0, id.rfind(':'));
            if (name.starts_with("functions.")) name.remove_prefix(10);
            skip_spaces();
            std::optional<Json> arguments = json();
            if (!arguments) return false;
            skip_spaces();
            if (!take("<|tool_call_end|>")) return refuse("has no <|tool_call_end|> behind it");
            if (!add(name, std::move(*arguments), std::string(id))) return false;
        }
        take("<|tool_calls_section_end|>");
        return !calls_.empty() || refuse("holds no call");
    }

    // Gemma 4: call:NAME{key:<|"|>text<|"|>}<tool_call|>.
    bool gemma() {
        if (!take("call:")) return refuse("does not begin with call:");
        const size_t brace = rest().find('{');
        const std::string_view name = rest().substr(0, std::min(brace, rest().size()));
        at_ += name.size();
        std::optional<Json> arguments = read_loose_value(text_, at_);
        if (!arguments) return refuse("has arguments that cannot be read");
        return (take("<tool_call|>") || at_ == text_.size() || refuse("has no <tool_call|> behind it")) &&
               add(name, std::move(*arguments));
    }

    // LFM2: [name(key="value"), ...].
    bool pythonic() {
        skip_spaces();
        if (!take("[")) return refuse("is no list");
        while (skip_spaces(), !take("]")) {
            if (!calls_.empty() && !take(",")) return refuse("is no list of calls");
            skip_spaces();
            const std::string_view name = until("(");
            std::optional<Json> arguments = read_loose_arguments(text_, at_, ')');
            if (!arguments) return refuse("has arguments that cannot be read");
            if (!add(name, std::move(*arguments))) return false;
        }
        take("<|tool_call_end|>");
        return !calls_.empty();
    }

    // Objects with a name, in a list, or one after the other.
    bool json_calls() {
        do {
            const std::optional<Json> value = json();
            if (!value) return false;
            if (!value->is_array() && !add_object(*value)) return false;
            if (value->is_array())
                for (const Json& call : *value)
                    if (!add_object(call)) return false;
            skip_spaces();
            if (take(";")) skip_spaces();
        } while (rest().starts_with("{"));
        return !calls_.empty() || refuse("holds no call");
    }

private:
    std::string_view rest() const { return text_.substr(at_); }
    void skip_spaces() { at_ = std::min(text_.find_first_not_of(kSpaces, at_), text_.size()); }

    bool take(std::string_view mark) {
        if (!rest().starts_with(mark)) return false;
        at_ += mark.size();
        return true;
    }

    // What stands before the mark, and moves behind it; nothing, where it is not found.
    std::string_view until(std::string_view mark) {
        const size_t end = text_.find(mark, at_);
        if (end == text_.npos) return {};
        const std::string_view before = text_.substr(at_, end - at_);
        at_ = end + mark.size();
        return before;
    }

    bool refuse(std::string_view why) {
        if (problem_.empty()) problem_ = why;
        return false;
    }

    std::optional<Json> json() {
        const size_t end =
            rest().starts_with("{") || rest().starts_with("[") ? json_end(text_, at_) : text_.npos;
        Json value =
            end == text_.npos ? Json(Json::value_t::discarded) : read_json(text_.substr(at_, end - at_));
        if (value.is_discarded()) {
            refuse("is no JSON");
            return {};
        }
        at_ = end;
        return value;
    }

    bool add(std::string_view name, Json arguments, std::string id = {}) {
        if (name.empty()) return refuse("names no function");
        // Some models write the object as a text that holds it.
        if (arguments.is_string()) arguments = parsed(arguments.get<std::string>());
        if (arguments.is_null()) arguments = Json::object();
        if (!arguments.is_object()) return refuse("has arguments that are no object");
        calls_.push_back({std::move(id), std::string(name), std::move(arguments)});
        return true;
    }

    bool add_object(const Json& call) {
        if (!call.is_object()) return refuse("is no object");
        if (call.contains("function") && call["function"].is_object()) return add_object(call["function"]);
        const auto text = [&](const char* key) {
            const auto found = call.find(key);
            return found != call.end() && found->is_string() ? found->get<std::string>() : std::string();
        };
        const std::string name = text("name").empty() ? text("function") : text("name");
        for (const char* key : {"arguments", "parameters"})
            if (call.contains(key)) return add(name, call[key], text("id"));
        return refuse("has neither arguments nor parameters");
    }

    bool keyed_arguments() {
        const size_t end =
            std::min({text_.find("<arg_key>", at_), text_.find("</tool_call>", at_), text_.size()});
        const std::string_view name = trimmed(text_.substr(at_, end - at_));
        if (name.find_first_of(" \t\r\n{}<") != name.npos) return refuse("names no function");
        at_ = end;
        Json arguments = Json::object();
        while (skip_spaces(), take("<arg_key>")) {
            const std::string_view key = trimmed(until("</arg_key>"));
            skip_spaces();
            if (key.empty() || !take("<arg_value>")) return refuse("has a key without a value");
            arguments[std::string(key)] = parameter(name, key, until("</arg_value>"));
        }
        return add(name, std::move(arguments));
    }

    bool parameters(std::string_view open, std::string_view middle, std::string_view close,
                    std::string_view name, Json& arguments) {
        while (skip_spaces(), take(open)) {
            const std::string_view key = until(middle);
            if (key.empty() || text_.find(close, at_) == text_.npos)
                return refuse(fmt::format("has no {} behind a parameter", close));
            arguments[std::string(key)] = parameter(name, key, without_outer_lines(until(close)));
        }
        return true;
    }

    // A text by the function's schema, else what JSON it is, else a text.
    Json parameter(std::string_view name, std::string_view key, std::string_view text) const {
        const Json* function = find_function(tools_, name);
        const Json::json_pointer type("/parameters/properties");
        if (function && function->contains(type) && (*function)[type].contains(std::string(key))) {
            const Json& schema = (*function)[type][std::string(key)];
            if (schema.is_object() && schema.contains("type") && schema["type"] == "string") return text;
        }
        Json value = parsed(trimmed(text));
        return value.is_discarded() ? Json(text) : value;
    }

    std::string_view text_;
    size_t at_;
    const Json& tools_;
    std::vector<ToolCall> calls_;
    std::string problem_;
};

struct Form {
    std::string_view mark;
    bool (CallReader::*read)();
    bool keeps_mark = false;  // the reader begins at the mark, not behind it
};

constexpr Form kForms[] = {
    {"<tool_call>", &CallReader::tagged},
    {"<function=", &CallReader::named_function},
    {"<minimax:tool_call>", &CallReader::invocations},
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

// Llama 3.1 writes nothing but JSON; so does a model that was asked for JSON, hence the names.
bool read_bare(std::string_view answer, const Json& tools, ParsedAnswer& out) {
    const std::string_view text = trimmed(answer);
    if (!text.starts_with("{") && !text.starts_with("[{")) return false;
    CallReader reader(text, 0, tools);
    if (!reader.json_calls() || reader.at() != text.size()) return false;
    const auto offered = [&](const ToolCall& call) { return find_function(tools, call.name) != nullptr; };
    if (!std::all_of(reader.calls().begin(), reader.calls().end(), offered)) return false;
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
        std::move(reader.calls().begin(), reader.calls().end(), std::back_inserter(out.calls));
    }
    out.content += answer.substr(copied);
    if (!out.calls.empty()) out.content = trimmed(out.content);
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
                                                  "<|tool_call_start|>"};
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
