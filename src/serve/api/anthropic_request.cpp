#include "serve/api/anthropic.h"

#include <algorithm>

namespace redline::serve {

namespace {

// The texts of a list of blocks, or a text.
Result<std::string> block_text(const Json& content, const std::string& where) {
    if (content.is_string()) return content.get<std::string>();
    if (content.is_null()) return std::string();
    if (!content.is_array())
        return error("{} is {}; it has to be a text or a list of blocks", where, excerpt(content));
    std::string text;
    for (const Json& block : content) {
        const Fields fields(block, where + ".");
        const std::string type = RL_TRY(fields.text("type"));
        if (type != "text")
            return error("{} has a block of the type \"{}\"; models read text alone here", where, type);
        text += (text.empty() ? "" : "\n") + RL_TRY(fields.text("text"));
    }
    return text;
}

// Claude Code puts a value into the first line of its system text that changes with each request: with it no
// request would begin as another.
std::string without_changing_line(std::string text) {
    constexpr std::string_view kBilling = "x-anthropic-billing-header:";
    constexpr std::string_view kValue = "cch=";
    const size_t end = std::min(text.find('\n'), text.size());
    if (!text.starts_with(kBilling)) return text;
    const size_t at = text.find(kValue);
    if (at >= end) return text;
    const size_t begin = at + kValue.size();
    const size_t stop = std::min(text.find_first_of("; \n", begin), text.size());
    return text.replace(begin, stop - begin, "0");
}

Status read_system(const Json& system, Json& messages) {
    std::string text;
    if (system.is_array()) {
        for (const Json& block : system) {
            const std::string each = RL_TRY(block_text(Json::array({block}), "system"));
            text += (text.empty() ? "" : "\n") + without_changing_line(each);
        }
    } else {
        text = without_changing_line(RL_TRY(block_text(system, "system")));
    }
    if (!text.empty()) messages.push_back({{"role", "system"}, {"content", text}});
    return {};
}

// The blocks of one message: texts and calls of the assistant are one message, results of tools one each.
class BlockReader {
public:
    BlockReader(std::string role, std::string where) : role_(std::move(role)), where_(std::move(where)) {}

    Status read(const Json& block, Json& messages) {
        if (!block.is_object()) return error("{} has {}, which is no block", where_, excerpt(block));
        const Fields fields(block, where_ + ".");
        const std::string type = RL_TRY(fields.text("type"));
        if (type == "text") {
            add_line(RL_TRY(fields.text("text")));
        } else if (type == "thinking" && role_ == "assistant") {
            reasoning_ += RL_TRY(fields.text("thinking"));
        } else if (type == "redacted_thinking") {
            // Reasoning of another server, which cannot be read.
        } else if (type == "tool_use" && role_ == "assistant") {
            const Json* input = fields.find("input");
            calls_.push_back(
                {{"id", RL_TRY(fields.text("id"))},
                 {"type", "function"},
                 {"function",
                  {{"name", RL_TRY(fields.text("name"))}, {"arguments", input ? json_text(*input) : "{}"}}}});
        } else if (type == "tool_result" && role_ == "user") {
            const Json* content = fields.find("content");
            std::string text = content ? RL_TRY(block_text(*content, where_ + ".content")) : "";
            if (RL_TRY(fields.flag("is_error", false))) text = "error: " + text;
            messages.push_back(
                {{"role", "tool"}, {"tool_call_id", RL_TRY(fields.text("tool_use_id"))}, {"content", text}});
        } else {
            return error("{} has a block of the type \"{}\", which a message of the {} cannot have here",
                         where_, type, role_);
        }
        return {};
    }

    void finish(Json& messages) {
        if (text_.empty() && calls_.empty() && reasoning_.empty()) return;
        Json message = {{"role", role_}, {"content", text_}};
        if (!reasoning_.empty()) message["reasoning_content"] = reasoning_;
        if (!calls_.empty()) message["tool_calls"] = calls_;
        messages.push_back(std::move(message));
    }

private:
    void add_line(const std::string& text) { text_ += (text_.empty() ? "" : "\n") + text; }

    const std::string role_, where_;
    std::string text_, reasoning_;
    Json calls_ = Json::array();
};

Status read_anthropic_messages(const Json& given, Json& messages) {
    if (!given.is_array() || given.empty())
        return error("messages is {}; it has to be a list of messages", excerpt(given));
    for (size_t i = 0; i < given.size(); ++i) {
        const std::string where = fmt::format("messages[{}]", i);
        if (!given[i].is_object()) return error("{} has to be an object with a role and a content", where);
        const Fields fields(given[i], where + ".");
        const std::string role = RL_TRY(fields.text("role"));
        if (role != "user" && role != "assistant" && role != "system")
            return error("{}.role is \"{}\"; it has to be user, assistant or system", where, role);
        const Json* content = fields.find("content");
        if (!content) return error("{} has no content", where);
        if (content->is_string()) {
            messages.push_back({{"role", role}, {"content", *content}});
            continue;
        }
        if (!content->is_array()) return error("{}.content has to be a text or a list of blocks", where);
        BlockReader reader(role, where + ".content");
        for (const Json& block : *content) RL_TRY(reader.read(block, messages));
        reader.finish(messages);
    }
    return {};
}

Status read_anthropic_tools(const Fields& fields, ChatCall& call) {
    const Json* tools = fields.find("tools");
    const Json none = Json::array();
    Json all = Json::array();
    if (tools && !tools->is_array()) return error("tools is {}; it has to be a list", excerpt(*tools));
    for (const Json& tool : tools ? *tools : none) {
        const Fields one(tool, "tools.");
        const std::string name = RL_TRY(one.text("name")), type = RL_TRY(one.text("type", "custom"));
        if (type != "custom")
            return error(
                "tools has one of the type \"{}\", which only Anthropic's servers run; functions with an "
                "input_schema are possible",
                type);
        const Json* schema = one.find("input_schema");
        all.push_back({{"name", name},
                       {"description", RL_TRY(one.text("description"))},
                       {"parameters", schema ? *schema : Json::object()}});
    }
    Json form = {{"tools", all}};
    if (const Json* choice = fields.find("tool_choice")) {
        const Fields inner(*choice, "tool_choice.");
        const std::string type = RL_TRY(inner.text("type"));
        if (type == "tool")
            form["tool_choice"] = {{"type", "function"},
                                   {"function", {{"name", RL_TRY(inner.text("name"))}}}};
        else if (type == "auto" || type == "any" || type == "none")
            form["tool_choice"] = type == "any" ? "required" : type;
        else
            return error("tool_choice is {}; its type has to be auto, any, tool or none", excerpt(*choice));
        form["parallel_tool_calls"] = !RL_TRY(inner.flag("disable_parallel_tool_use", false));
    }
    return read_tool_choice(Fields(form), call);
}

Status read_thinking(const Fields& fields, const Service& service, ChatCall& call) {
    call.reasoning_budget = service.served.reasoning_budget;
    const Json* thinking = fields.find("thinking");
    if (!thinking) return {};
    const Fields inner(*thinking, "thinking.");
    const std::string type = RL_TRY(inner.text("type"));
    if (type != "enabled" && type != "disabled" && type != "adaptive")
        return error("thinking is {}; its type has to be enabled, adaptive or disabled", excerpt(*thinking));
    call.thinking = type != "disabled";
    call.reasoning_budget =
        RL_TRY(inner.integer("budget_tokens", call.reasoning_budget, 0, int64_t(1) << 40));
    return {};
}

}  // namespace

Result<ChatCall> read_anthropic(const Json& body, const Service& service) {
    const Fields fields(body);
    ChatCall call;
    if (const Json* system = fields.find("system")) RL_TRY(read_system(*system, call.messages));
    const Json* messages = fields.find("messages");
    RL_TRY(read_anthropic_messages(messages ? *messages : Json(), call.messages));
    // Messages whose blocks have no text are none.
    if (call.messages.empty())
        return error("messages has no text: give it a block of text that is not empty");
    // A last message of the assistant is the beginning of its answer in this API.
    call.continues = call.messages.back().value("role", "") == "assistant";
    call.wishes.sampling = service.served.sampling;
    RL_TRY(read_sampling(fields, call.wishes.sampling));
    call.wishes.max_tokens = RL_TRY(fields.integer("max_tokens", -1, 1, int64_t(1) << 40));
    call.wishes.stream = RL_TRY(fields.flag("stream", false));
    RL_TRY(read_stops(fields, "stop_sequences", call.wishes.stops));
    RL_TRY(fields.refuse("container", "code is not run here"));
    RL_TRY(fields.refuse("mcp_servers", "this server calls no others"));
    RL_TRY(read_anthropic_tools(fields, call));
    RL_TRY(read_thinking(fields, service, call));
    if (const Json* config = fields.find("output_config"); config && config->is_object()) {
        const Json* format = Fields(*config).find("format");
        if (format && format->is_object() && Fields(*format).has("schema"))
            RL_TRY(hold_to_schema(call.wishes, (*format)["schema"], false, "output_config.format.schema"));
    }
    return call;
}

}  // namespace redline::serve
