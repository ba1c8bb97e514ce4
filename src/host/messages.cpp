#include "host/messages.h"

#include "text/chat/loose_value.h"
#include "text/tokens/unicode.h"

#include <algorithm>

namespace redline {

namespace {

constexpr std::string_view kRoles[] = {"system", "developer", "user", "assistant", "tool", "function"};

Result<Json> parse_named(std::string_view text, const std::string& name) {
    try {
        Json value = parse_json(text);
        // Code that walks through a value recurses.
        const size_t begin = std::min(text.find_first_of("[{"), text.size());
        if (value.is_structured() && json_end(text, begin) == text.npos)
            return error("{} is nested too deep", name);
        return value;
    } catch (const Json::exception& problem) {
        // A number that no double holds is out of range, and no error of the syntax. The library's text names
        // itself and the byte: "... parse error at line 1, column 2: ...".
        const std::string_view said = problem.what();
        return error("{} is no JSON: {}", name, said.substr(std::min(said.find("] ") + 2, said.size())));
    }
}

std::string text_of(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// "a number", "an array".
std::string kind_of(const Json& value) {
    const std::string_view name = value.type_name();
    return fmt::format("{} {}", name[0] == 'a' || name[0] == 'o' ? "an" : "a", name);
}

// Parts of text in one form. The texts of an assistant's refusal are its answer, too.
Result<Json> read_part(const Json& part, const std::string& where) {
    if (!part.is_object())
        return error("{} must be an object with a type, such as {{\"type\": \"text\", \"text\": \"Hi\"}}",
                     where);
    const std::string type = text_of(part, "type");
    if (type != "text" && type != "input_text" && type != "output_text" && type != "refusal")
        return error("{} is of the type \"{}\": models read text alone here; leave it out", where,
                     printable(type));
    const char* key = type == "refusal" ? "refusal" : "text";
    if (!part.contains(key) || !part[key].is_string()) return error("{} has no {}", where, key);
    Json read = part;
    read["type"] = "text";
    read["text"] = part[key];
    return read;
}

// A text, a list of parts, or null.
Result<Json> read_content(const Json& content, const std::string& where) {
    if (content.is_null() || content.is_string()) return content;
    if (!content.is_array())
        return error("{}.content must be a text or a list of parts, not {}", where, kind_of(content));
    if (content.empty()) return Json("");
    Json parts = Json::array();
    for (size_t i = 0; i < content.size(); ++i)
        parts.push_back(RL_TRY(read_part(content[i], fmt::format("{}.content[{}]", where, i))));
    return parts;
}

// Null, an empty text and none at all are calls without arguments.
Status check_arguments(const Json& function, const std::string& where) {
    const auto found = function.find("arguments");
    if (found == function.end() || found->is_null() || found->is_object()) return {};
    if (found->is_string()) {
        const auto& text = found->get_ref<const std::string&>();
        if (text.find_first_not_of(" \t\r\n") == text.npos || read_json(text).is_object()) return {};
    }
    return error("{}.arguments must be a JSON object or a text that holds one, such as \"{{}}\", not {}",
                 where,
                 found->is_string()
                     ? fmt::format("the text \"{}\"", printable(found->get<std::string>().substr(0, 60)))
                     : kind_of(*found));
}

Status check_calls(Json& message, const std::string& where) {
    // OpenAI's older form: one call, without an id.
    if (message.contains("function_call") && !message.contains("tool_calls")) {
        message["tool_calls"] = Json::array({{{"type", "function"}, {"function", message["function_call"]}}});
        message.erase("function_call");
    }
    if (!message.contains("tool_calls")) return {};
    Json& calls = message["tool_calls"];
    if (!calls.is_array()) return error("{}.tool_calls must be a list", where);
    if (text_of(message, "role") != "assistant")
        return error("{} has tool_calls, which only messages of the role assistant have", where);
    for (size_t i = 0; i < calls.size(); ++i) {
        const std::string call = fmt::format("{}.tool_calls[{}]", where, i);
        const bool named = calls[i].is_object() && calls[i].contains("function") &&
                           calls[i]["function"].is_object() && !text_of(calls[i]["function"], "name").empty();
        if (!named)
            return error(
                "{} must have a function with a name, such as {{\"function\": {{\"name\": \"f\", "
                "\"arguments\": \"{{}}\"}}}}",
                call);
        RL_TRY(check_arguments(calls[i]["function"], call + ".function"));
        if (text_of(calls[i], "type").empty()) calls[i]["type"] = "function";
    }
    return {};
}

// The reasoning has a name for each family of clients and of templates.
void name_reasoning(Json& message) {
    if (!message.contains("reasoning_content") && message.contains("reasoning") &&
        message["reasoning"].is_string())
        message["reasoning_content"] = message["reasoning"];
    const bool only_calls = message.contains("tool_calls") && !message["content"].is_array() &&
                            text_of(message, "content").empty();
    // gpt-oss reads it of calls alone, and takes no content beside it.
    if (only_calls && message.contains("reasoning_content") && !message.contains("thinking"))
        message["thinking"] = message["reasoning_content"];
}

Status check_role(Json& message, const std::string& where) {
    if (!message.contains("role") && message.contains("from") && message.contains("value"))
        return error("{} has \"from\" and \"value\", which are called \"role\" and \"content\" here", where);
    const std::string role = text_of(message, "role");
    if (std::find(std::begin(kRoles), std::end(kRoles), role) == std::end(kRoles))
        return error("{} has the role \"{}\"; roles are {}", where, printable(role), fmt::join(kRoles, ", "));
    // OpenAI's older name.
    if (role == "function") message["role"] = "tool";
    return {};
}

// Clients write what is not there as null. An empty list of calls is none to them, but one to some templates.
Json without_absent(const Json& message) {
    Json present = Json::object();
    for (const auto& [key, value] : message.items())
        if (key == "content" || !(value.is_null() || (key == "tool_calls" && value.empty())))
            present[key] = value;
    return present;
}

Status check_message(Json& message, const std::string& where) {
    if (!message.is_object()) return error("{} must be an object with a role and a content", where);
    RL_TRY(check_role(message, where));
    const bool has_content = message.contains("content");
    message = without_absent(message);
    RL_TRY(check_calls(message, where));
    for (const char* key : {"name", "tool_call_id"})
        if (message.contains(key) && !message[key].is_string())
            return error("{}.{} must be a text", where, key);
    if (!has_content) message["content"] = nullptr;
    message["content"] = RL_TRY(read_content(message["content"], where));
    if (message["content"].is_null()) {
        const std::string role = text_of(message, "role");
        const bool says_else = message.contains("tool_calls") || message.contains("refusal");
        if (role == "assistant" && !has_content && !says_else)
            return error("{} has neither content nor tool_calls", where);
        if (role != "assistant" && !(role == "tool" && has_content)) return error("{} has no content", where);
        if (role == "tool") message["content"] = "";
        if (!text_of(message, "refusal").empty()) message["content"] = message["refusal"];
    }
    name_reasoning(message);
    return {};
}

// The calls that messages of the role tool answer: each has an id, by its place where it came without, and
// the answer has the id and the function's name.
class CallLinks {
public:
    Status link(Json& message, const std::string& where) {
        const std::string role = text_of(message, "role");
        if (role == "assistant") begin(message);
        if (role != "tool") return {};
        if (!message.contains("tool_call_id")) {
            const std::string name = text_of(message, "name");
            const auto unanswered = std::find_if(calls_.begin() + last_, calls_.end(), [&](const Call& call) {
                return !call.answered && (name.empty() || call.name == name);
            });
            if (unanswered == calls_.end()) return {};
            message["tool_call_id"] = unanswered->id;
        }
        const std::string id = text_of(message, "tool_call_id");
        const auto has_id = [&](const Call& each) { return each.id == id; };
        // Ids may come again; the last call is meant.
        const auto call = std::find_if(calls_.rbegin(), calls_.rend(), has_id);
        if (call == calls_.rend()) {
            if (calls_.empty()) return {};
            std::vector<std::string> ids;
            for (const Call& each : calls_) ids.push_back(printable(each.id));
            return error("{}.tool_call_id is \"{}\"; the calls before it are {}", where, printable(id),
                         fmt::join(ids, ", "));
        }
        call->answered = true;
        if (!message.contains("name")) message["name"] = call->name;
        return {};
    }

private:
    struct Call {
        std::string id;
        std::string name;
        bool answered = false;
    };

    void begin(Json& message) {
        if (!message.contains("tool_calls")) return;
        last_ = ptrdiff_t(calls_.size());
        for (Json& call : message["tool_calls"]) {
            if (text_of(call, "id").empty()) call["id"] = fmt::format("call{:05}", ++made_);
            calls_.push_back({text_of(call, "id"), text_of(call["function"], "name")});
        }
    }

    std::vector<Call> calls_;
    ptrdiff_t last_ = 0;  // where those of the last message that has calls begin
    size_t made_ = 0;
};

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

Result<ChatRequest> read_messages(std::string_view text, const std::string& name, Notes& notes) {
    const Json all = RL_TRY(parse_named(text, name));
    if (all.is_object()) {
        std::vector<std::string> others;
        for (const auto& [key, value] : all.items())
            if (key != "messages" && key != "tools" && key != "model") others.push_back(printable(key));
        if (!others.empty())
            notes.note(fmt::format("{}: {} {} not read here; options say such things", name,
                                   fmt::join(others, ", "), others.size() == 1 ? "is" : "are"));
    }
    return read_chat_request(all, name);
}

Result<ChatRequest> read_chat_request(const Json& conversation, const std::string& name, bool answered) {
    ChatRequest request;
    Json all = conversation;
    if (all.is_object()) {
        if (all.contains("tools") && !all["tools"].is_null())
            request.tools = RL_TRY(check_tools(all["tools"], name + ": tools"));
        all = all.contains("messages") ? Json(all["messages"]) : Json();
    }
    if (!all.is_array() || all.empty())
        return error(
            "{} must hold a list of messages, for example [{{\"role\": \"user\", \"content\": \"Hi\"}}]",
            name);
    CallLinks links;
    for (size_t i = 0; i < all.size(); ++i) {
        const std::string where = fmt::format("{}: messages[{}]", name, i);
        RL_TRY(check_message(all[i], where));
        RL_TRY(links.link(all[i], where));
    }
    if (answered && text_of(all.back(), "role") == "assistant")
        return error("{}: messages[{}], the last, is the assistant's; a user's or a tool's is answered", name,
                     all.size() - 1);
    request.messages = std::move(all);
    return request;
}

Result<Json> read_tools(std::string_view text, const std::string& name) {
    return read_functions(RL_TRY(parse_named(text, name)), name);
}

Result<Json> read_functions(const Json& tools, const std::string& name) {
    return check_tools(tools, name);
}

}  // namespace redline
