#include "cli/messages.h"

#include "cli/command.h"
#include "text/loose_value.h"
#include "text/unicode.h"

#include <algorithm>

namespace redline::cli {

namespace {

constexpr std::string_view kRoles[] = {"system", "developer", "user", "assistant", "tool"};

Result<Json> parse_named(std::string_view text, const std::string& name) {
    try {
        Json value = parse_json(text);
        // What goes through a value recurses.
        const size_t begin = std::min(text.find_first_of("[{"), text.size());
        if (value.is_structured() && json_end(text, begin) == text.npos)
            return error("{} is nested too deep", name);
        return value;
    } catch (const Json::parse_error& problem) {
        // The library's text names itself and the byte: "... parse error at line 1, column 2: ...".
        const std::string_view said = problem.what();
        return error("{} is no JSON: {}", name, said.substr(std::min(said.find("] ") + 2, said.size())));
    }
}

std::string text_of(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// Text alone; its parts become lines, as most templates take one text only.
Result<std::string> read_content(const Json& content, const std::string& where) {
    if (content.is_null()) return std::string();
    if (content.is_string()) return content.get<std::string>();
    if (!content.is_array()) return error("{}.content must be a text or a list of parts", where);
    std::string all;
    for (size_t i = 0; i < content.size(); ++i) {
        const std::string part = fmt::format("{}.content[{}]", where, i);
        if (!content[i].is_object()) return error("{} must be an object with a type", part);
        const std::string type = text_of(content[i], "type");
        if (type != "text" && type != "input_text" && type != "output_text")
            return error("{} is of the type \"{}\": models read text alone here; leave it out", part,
                         printable(type));
        if (!content[i].contains("text") || !content[i]["text"].is_string())
            return error("{} has no text", part);
        all += (i > 0 ? "\n" : "") + content[i]["text"].get<std::string>();
    }
    return all;
}

Status check_calls(const Json& message, const std::string& where) {
    if (!message.contains("tool_calls")) return {};
    const Json& calls = message["tool_calls"];
    if (!calls.is_array()) return error("{}.tool_calls must be a list", where);
    for (size_t i = 0; i < calls.size(); ++i) {
        const bool named = calls[i].is_object() && calls[i].contains("function") &&
                           calls[i]["function"].is_object() && !text_of(calls[i]["function"], "name").empty();
        if (!named) return error("{}.tool_calls[{}] must have a function with a name", where, i);
    }
    return {};
}

Status check_message(Json& message, const std::string& where) {
    if (!message.is_object()) return error("{} must be an object with a role and a content", where);
    const std::string role = text_of(message, "role");
    if (std::find(std::begin(kRoles), std::end(kRoles), role) == std::end(kRoles))
        return error("{} has the role \"{}\"; roles are {}", where, printable(role), fmt::join(kRoles, ", "));
    const bool calls = message.contains("tool_calls");
    if (!calls && (!message.contains("content") || message["content"].is_null()))
        return error("{} has no content", where);
    RL_TRY(check_calls(message, where));
    message["content"] =
        RL_TRY(read_content(message.contains("content") ? message["content"] : Json(), where));
    return {};
}

Result<Json> check_tools(const Json& tools, const std::string& name) {
    if (!tools.is_array()) return error("{} must be a list of functions", name);
    Json all = Json::array();
    for (size_t i = 0; i < tools.size(); ++i) {
        const bool wrapped =
            tools[i].is_object() && tools[i].contains("function") && tools[i]["function"].is_object();
        const Json& function = wrapped ? tools[i]["function"] : tools[i];
        if (!function.is_object() || text_of(function, "name").empty())
            return error("{}[{}] must be a function with a name", name, i);
        all.push_back({{"type", "function"}, {"function", function}});
    }
    return all;
}

}  // namespace

Result<ChatRequest> read_messages(std::string_view text, const std::string& name) {
    Json all = RL_TRY(parse_named(text, name));
    ChatRequest request;
    if (all.is_object()) {
        if (all.contains("tools") && !all["tools"].is_null())
            request.tools = RL_TRY(check_tools(all["tools"], name + ": tools"));
        std::vector<std::string> others;
        for (const auto& [key, value] : all.items())
            if (key != "messages" && key != "tools" && key != "model") others.push_back(printable(key));
        if (!others.empty())
            note(fmt::format("{}: {} {} not read here; options say such things", name,
                             fmt::join(others, ", "), others.size() == 1 ? "is" : "are"));
        all = all.contains("messages") ? Json(all["messages"]) : Json();
    }
    if (!all.is_array() || all.empty())
        return error(
            "{} must hold a list of messages, for example [{{\"role\": \"user\", \"content\": \"Hi\"}}]",
            name);
    for (size_t i = 0; i < all.size(); ++i)
        RL_TRY(check_message(all[i], fmt::format("{}: messages[{}]", name, i)));
    if (text_of(all.back(), "role") == "assistant")
        return error("{}: messages[{}], the last, is the assistant's own; a user's or a tool's is answered",
                     name, all.size() - 1);
    request.messages = std::move(all);
    return request;
}

Result<Json> read_tools(std::string_view text, const std::string& name) {
    const Json tools = RL_TRY(parse_named(text, name));
    return check_tools(tools, name);
}

}  // namespace redline::cli
