// Reads calls of functions as the families of models write them.
#pragma once

#include "text/chat/call_cursor.h"

namespace redline {

// Each read_...() expects its mark to be behind the cursor, and returns whether it found whole calls; it
// leaves the cursor behind them.
class CallReader : public CallCursor {
public:
    using CallCursor::CallCursor;

    // <tool_call>: JSON (Hermes, Qwen), <function=...> (Qwen3-Coder), or a name and <arg_key>s (GLM).
    bool tagged() {
        skip_spaces();
        for (; take("<tool_call>"); skip_spaces()) slip("<tool_call> stands twice");
        bool read = false;
        if (rest().starts_with("{") || rest().starts_with("["))
            read = json_calls();
        else if (take("<function="))
            read = named_function();
        else
            read = keyed_arguments();
        return read && closed("</tool_call>");
    }

    // <function=NAME>, with parameters in marks, whose values stand on separate lines, or as JSON.
    bool named_function() { return read_function(Lines::outer); }

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
        if (!take("<function=") || !read_function(Lines::kept)) return refuse("holds no call");
        return closed("</seed:tool_call>");
    }

    // Hunyuan: JSON, or calls with further marks.
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
        if (!parameters({"</param>", "<param name=\"", "</function>", "<function name=\""}, "\">", name,
                        Lines::kept, arguments))
            return false;
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
            std::optional<Json> arguments = this->arguments(name);
            if (!arguments) return false;
            skip_spaces();
            if (!take_all("<|tool_call:end|>")) return refuse("has no <|tool_call:end|> behind it");
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

    // Mistral: a list of objects, or NAME[CALL_ID]ID[ARGS]{...}, each behind a mark.
    bool mistral() {
        constexpr std::string_view kArguments = "[ARGS]", kId = "[CALL_ID]";
        skip_spaces();
        if (rest().starts_with("[") && !rest().starts_with(kArguments)) return json_calls();
        const size_t end = std::min(rest().find(kArguments), rest().find('{'));
        if (end == rest().npos) return refuse("has no arguments");
        const std::string_view head = rest().substr(0, end);
        at_ += end;
        take(kArguments);
        const size_t begin = std::min(head.find(kId), head.size());
        const std::string_view name = trimmed_text(head.substr(0, begin));
        const std::string_view id = trimmed_text(head.substr(std::min(begin + kId.size(), head.size())));
        std::optional<Json> read = arguments(name);
        return read && add(name, std::move(*read), std::string(id));
    }

    // Harmony: the cursor stands at the header of a message.
    bool harmony() {
        const std::string_view header = until("<|message|>");
        const size_t to = header.find("to=");
        std::string_view name = header.substr(std::min(to + 3, header.size()));
        name = name.substr(0, name.find_first_of(" \t\r\n<"));
        if (name.starts_with("functions.")) name.remove_prefix(10);
        skip_spaces();
        std::optional<Json> read;
        if (take("<atem:function_calls>")) {
            if (!atem()) return false;
        } else if (read = header.empty() ? json() : arguments(name); !read) {
            return false;
        }
        skip_spaces();
        for (const std::string_view end : {"<|call|>", "<|end|>", "<|eom|>", "<|eot|>"})
            if (take(end)) break;
        return !read || add(name, std::move(*read));
    }

    // DeepSeek: function<sep>NAME and JSON in a block of code (V3, R1), or NAME<sep>JSON (V3.1).
    bool deepseek() {
        constexpr std::string_view kSep = "<｜tool▁sep｜>";
        while (skip_spaces(), take("<｜tool▁call▁begin｜>")) {
            std::string_view name = trimmed_text(until(kSep));
            const bool old = name == "function";
            if (old) name = trimmed_text(until("```json"));
            std::optional<Json> arguments = this->arguments(name);
            if (!arguments) return false;
            skip_spaces();
            if (old && !take("```")) return refuse("has no end of its block of code");
            if (!take_all("<｜tool▁call▁end｜>")) return refuse("has no <｜tool▁call▁end｜> behind it");
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
            std::optional<Json> arguments = this->arguments(name);
            if (!arguments) return false;
            skip_spaces();
            if (!take_all("<|tool_call_end|>")) return refuse("has no <|tool_call_end|> behind it");
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
        std::optional<Json> arguments = read_gemma_value(text_, at_);
        if (!arguments) return refuse("has arguments that cannot be read");
        return closed("<tool_call|>") && add(name, std::move(*arguments));
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
    // The line ends next to the marks belong to a value, or stand outside of it.
    enum class Lines : uint8_t { kept, outer };

    // Behind <function=.
    bool read_function(Lines lines) {
        constexpr std::string_view kClose = "</function>";
        const std::string_view name = until(">");
        skip_spaces();
        Json arguments = Json::object();
        if (rest().starts_with("{")) {
            const std::optional<Json> read = json();
            if (!read) return false;
            arguments = *read;
        } else if (!parameters({"</parameter>", "<parameter=", kClose, "<function="}, ">", name, lines,
                               arguments)) {
            return false;
        }
        skip_spaces();
        if (rest().starts_with("</tool_call>"))
            slip(fmt::format("{} is missing", kClose));
        else if (!take_all(kClose))
            return refuse(fmt::format("has no {} behind it", kClose));
        return add(name, std::move(arguments));
    }

    // Names and parameters in marks that begin with `prefix`.
    bool invocations(std::string_view prefix, std::string_view close) {
        const std::string open_name = fmt::format("<{}invoke name=\"", prefix),
                          close_name = fmt::format("</{}invoke>", prefix),
                          open = fmt::format("<{}parameter name=\"", prefix),
                          end = fmt::format("</{}parameter>", prefix);
        while (skip_spaces(), take(open_name)) {
            const std::string_view name = until("\">");
            const Json* function = find_function(tools_, name);
            Json arguments = Json::object();
            while (skip_spaces(), take(open)) {
                const std::optional<std::string_view> key = key_until("\"", function);
                const std::string_view kind = until(">");
                const std::optional<std::string_view> value =
                    value_until({end, open, close_name, open_name, ">"}, arguments);
                if (!key || !value) return refuse(fmt::format("has no {} behind a parameter", end));
                // DeepSeek's marks say what a text is.
                const bool is_text = kind.find("string=\"true\"") != kind.npos;
                arguments[std::string(*key)] =
                    is_text ? Json(*value) : parameter_value(function, *key, *value);
            }
            if (!take_all(close_name)) return refuse(fmt::format("has no {} behind it", close_name));
            if (!add(name, std::move(arguments))) return false;
        }
        return take_all(close) ? !calls_.empty() : refuse(fmt::format("has no {} behind it", close));
    }

    bool keyed_arguments() {
        constexpr ValueMarks kMarks = {"</arg_value>", "<arg_key>", "</tool_call>", "<tool_call>",
                                       "<arg_value>"};
        const size_t end =
            std::min({text_.find(kMarks.next, at_), text_.find(kMarks.parent, at_), text_.size()});
        const std::string_view name = trimmed_text(text_.substr(at_, end - at_));
        if (name.empty() || name.find_first_of(" \t\r\n{}<") != name.npos) return refuse("names no function");
        const Json* function = find_function(tools_, name);
        at_ = end;
        Json arguments = Json::object();
        while (skip_spaces(), take(kMarks.next)) {
            const std::optional<std::string_view> whole = key_until("</arg_key>", function);
            skip_spaces();
            if (!whole || !take("<arg_value>")) return refuse("has a key without a value");
            const Json* properties = function ? find_properties(*function) : nullptr;
            const bool known = properties && properties->contains(std::string(*whole));
            const std::string_view key = known ? *whole : trimmed_text(*whole);
            const std::optional<std::string_view> value = value_until(kMarks, arguments);
            if (!value) return refuse(fmt::format("has no {} behind a value", kMarks.close));
            arguments[std::string(key)] = parameter_value(function, key, *value);
        }
        return add(name, std::move(arguments));
    }

    bool parameters(const ValueMarks& marks, std::string_view middle, std::string_view name, Lines lines,
                    Json& arguments) {
        const Json* function = find_function(tools_, name);
        while (skip_spaces(), take(marks.next)) {
            const std::optional<std::string_view> key = key_until(middle, function);
            const std::optional<std::string_view> value = key ? value_until(marks, arguments) : std::nullopt;
            if (!value) return refuse(fmt::format("has no {} behind a parameter", marks.close));
            arguments[std::string(*key)] =
                parameter_value(function, *key, lines == Lines::outer ? without_outer_lines(*value) : *value);
        }
        return true;
    }
};

}  // namespace redline
