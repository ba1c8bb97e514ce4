// Reads calls of functions as the families of models write them.
#pragma once

#include "json/json.h"
#include "text/loose_value.h"
#include "text/tool_calls.h"

#include <algorithm>
#include <optional>

namespace redline {

inline constexpr std::string_view kCallSpaces = " \t\r\n";

inline std::string_view trimmed_text(std::string_view text) {
    text.remove_prefix(std::min(text.find_first_not_of(kCallSpaces), text.size()));
    return text.substr(0, text.find_last_not_of(kCallSpaces) + 1);
}

// A value between marks stands on lines of its own; these line ends are not a part of it.
inline std::string_view without_outer_lines(std::string_view text) {
    if (text.starts_with('\n')) text.remove_prefix(1);
    if (text.ends_with('\n')) text.remove_suffix(1);
    return text;
}

// Discarded where the text is no JSON, or nested so deep that what goes through it could exhaust the stack.
inline Json parsed_json(std::string_view text) {
    const bool nested = text.starts_with('{') || text.starts_with('[');
    if (nested && json_end(text, 0) != text.size()) return Json(Json::value_t::discarded);
    return read_json(text);
}

// The functions that are offered, whether each stands in {"type": "function", "function": ...} or alone.
inline const Json* find_function(const Json& tools, std::string_view name) {
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
    bool minimax() { return invocations("", "</minimax:tool_call>"); }
    // Muse-Glimmer.
    bool atem() { return invocations("atem:", "</atem:function_calls>"); }
    // DeepSeek V3.2 and V4.
    bool dsml_functions() { return invocations("｜DSML｜", "</｜DSML｜function_calls>"); }
    bool dsml_tools() { return invocations("｜DSML｜", "</｜DSML｜tool_calls>"); }

    // Seed-OSS.
    bool seed() {
        skip_spaces();
        if (!take("<function=") || !named_function()) return refuse("holds no call");
        skip_spaces();
        return take("</seed:tool_call>") || at_ == text_.size() ||
               refuse("has no </seed:tool_call> behind it");
    }

    // Hunyuan: JSON, or calls that have marks of their own.
    bool listed() {
        skip_spaces();
        if (rest().starts_with("{") || rest().starts_with("["))
            return json_calls() && closed("</tool_calls>");
        while (skip_spaces(), take("<tool_call>"))
            if (!tagged()) return false;
        return !calls_.empty() ? closed("</tool_calls>") : refuse("holds no call");
    }

    // Nemotron Nano 2; Command R7B, Command A; Granite 3, Phi-4-mini.
    bool nemotron() { return skip_spaces(), json_calls() && closed("</TOOLCALL>"); }
    bool command() { return skip_spaces(), json_calls() && closed("<|END_ACTION|>"); }
    bool granite() { return skip_spaces(), json_calls() && closed("<|/tool_call|>"); }

    // Command R: a list in a block of code.
    bool action() {
        skip_spaces();
        if (!take("```json")) return refuse("holds no list of actions");
        skip_spaces();
        return json_calls() && closed("```");
    }

    // GigaChat 3.
    bool function_call() { return skip_spaces(), json_calls(); }

    // MiniCPM 5: <function name="..."> with <param name="..."> in it.
    bool params() {
        const std::string_view name = until("\">");
        Json arguments = Json::object();
        if (!parameters("<param name=\"", "\">", "</param>", name, arguments)) return false;
        skip_spaces();
        return (take("</function>") || refuse("has no </function> behind it")) &&
               add(name, std::move(arguments));
    }

    // Apertus: a list of objects whose one key is the function.
    bool apertus() {
        skip_spaces();
        const std::optional<Json> list = json();
        if (!list) return false;
        if (!list->is_array()) return refuse("is no list");
        for (const Json& call : *list) {
            if (!call.is_object() || call.size() != 1) return refuse("is no list of calls");
            if (!add(call.begin().key(), call.begin().value())) return false;
        }
        return !calls_.empty() ? closed("<|tools_suffix|>") : refuse("holds no call");
    }

    // Solar Open: ID, name and arguments between marks.
    bool solar() {
        while (skip_spaces(), take("<|tool_call:begin|>")) {
            const std::string_view id = trimmed_text(until("<|tool_call:name|>"));
            const std::string_view name = trimmed_text(until("<|tool_call:args|>"));
            skip_spaces();
            std::optional<Json> arguments = json();
            if (!arguments) return false;
            skip_spaces();
            if (!take("<|tool_call:end|>")) return refuse("has no <|tool_call:end|> behind it");
            if (!add(name, std::move(*arguments), std::string(id))) return false;
        }
        for (const std::string_view end : {"<|calls|>", "<|end|>"})
            if (take(end)) break;
        return !calls_.empty() || refuse("holds no call");
    }

    // Llama 3.1: JSON objects with ";" between, or NAME.call(key="value").
    bool python_tag() {
        skip_spaces();
        if (rest().starts_with("{")) return json_calls();
        const std::string_view name = until(".call(");
        if (name.empty() || name.find_first_of(kCallSpaces) != name.npos)
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
            const std::string_view tail = trimmed_text(head.substr(begin + mark.size()));
            head = head.substr(0, begin);
            return tail;
        };
        cut("[ARGS]");
        const std::string_view id = cut("[CALL_ID]");
        std::optional<Json> arguments = json();
        return arguments && add(trimmed_text(head), std::move(*arguments), std::string(id));
    }

    // Harmony: the cursor stands at the header of a message.
    bool harmony() {
        const std::string_view header = until("<|message|>");
        const size_t to = header.find("to=");
        std::string_view name = header.substr(std::min(to + 3, header.size()));
        name = name.substr(0, name.find_first_of(" \t\r\n<"));
        if (name.starts_with("functions.")) name.remove_prefix(10);
        skip_spaces();
        std::optional<Json> arguments;
        if (take("<atem:function_calls>")) {
            if (!atem()) return false;
        } else if (arguments = json(); !arguments) {
            return false;
        }
        skip_spaces();
        for (const std::string_view end : {"<|call|>", "<|end|>", "<|eom|>", "<|eot|>"})
            if (take(end)) break;
        return !arguments || add(name, std::move(*arguments));
    }

    // DeepSeek: function<sep>NAME and JSON in a block of code (V3, R1), or NAME<sep>JSON (V3.1).
    bool deepseek() {
        constexpr std::string_view kSep = "<｜tool▁sep｜>";
        while (skip_spaces(), take("<｜tool▁call▁begin｜>")) {
            std::string_view name = trimmed_text(until(kSep));
            const bool old = name == "function";
            if (old) name = trimmed_text(until("```json"));
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
            const std::string_view id = trimmed_text(until("<|tool_call_argument_begin|>"));
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
        for (const std::string_view end : {"<|tool_call_end|>", "<|python_end|>"})
            if (take(end)) break;
        return !calls_.empty() || refuse("holds no call");
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
    // Names and parameters in marks that begin with `prefix`.
    bool invocations(std::string_view prefix, std::string_view close) {
        const std::string open_name = fmt::format("<{}invoke name=\"", prefix),
                          close_name = fmt::format("</{}invoke>", prefix),
                          open = fmt::format("<{}parameter name=\"", prefix),
                          end = fmt::format("</{}parameter>", prefix);
        while (skip_spaces(), take(open_name)) {
            const std::string_view name = until("\">");
            Json arguments = Json::object();
            while (skip_spaces(), take(open)) {
                const std::string_view key = until("\""), kind = until(">");
                if (key.empty() || text_.find(end, at_) == text_.npos)
                    return refuse(fmt::format("has no {} behind a parameter", end));
                const std::string_view value = without_outer_lines(until(end));
                const bool is_text = kind.find("string=\"true\"") != kind.npos;
                arguments[std::string(key)] = is_text ? Json(value) : parameter(name, key, value);
            }
            if (!take(close_name)) return refuse(fmt::format("has no {} behind it", close_name));
            if (!add(name, std::move(arguments))) return false;
        }
        return take(close) ? !calls_.empty() : refuse(fmt::format("has no {} behind it", close));
    }

    // Behind the mark that ends the calls; the end of the answer does, too.
    bool closed(std::string_view mark) {
        skip_spaces();
        return take(mark) || at_ == text_.size() || refuse(fmt::format("has no {} behind it", mark));
    }

    std::string_view rest() const { return text_.substr(at_); }
    void skip_spaces() { at_ = std::min(text_.find_first_not_of(kCallSpaces, at_), text_.size()); }

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
        if (arguments.is_string()) arguments = parsed_json(arguments.get<std::string>());
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
        const auto first = [&](const char* key, const char* otherwise) {
            return text(key).empty() ? text(otherwise) : text(key);
        };
        const std::string name =
            first("name", "function").empty() ? text("tool_name") : first("name", "function");
        for (const char* key : {"arguments", "parameters"})
            if (call.contains(key)) return add(name, call[key], first("id", "tool_call_id"));
        return refuse("has neither arguments nor parameters");
    }

    bool keyed_arguments() {
        const size_t end =
            std::min({text_.find("<arg_key>", at_), text_.find("</tool_call>", at_), text_.size()});
        const std::string_view name = trimmed_text(text_.substr(at_, end - at_));
        if (name.find_first_of(" \t\r\n{}<") != name.npos) return refuse("names no function");
        at_ = end;
        Json arguments = Json::object();
        while (skip_spaces(), take("<arg_key>")) {
            const std::string_view key = trimmed_text(until("</arg_key>"));
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
        Json value = parsed_json(trimmed_text(text));
        return value.is_discarded() ? Json(text) : value;
    }

    std::string_view text_;
    size_t at_;
    const Json& tools_;
    std::vector<ToolCall> calls_;
    std::string problem_;
};

}  // namespace redline
