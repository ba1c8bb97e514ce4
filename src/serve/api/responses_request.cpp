#include "serve/api/responses.h"

#include <algorithm>

namespace redline::serve {

namespace {

// The list of items as messages. Calls that follow each other belong to one message of the assistant, and the
// reasoning before them, too.
class ItemReader {
public:
    explicit ItemReader(Json& messages) : messages_(messages) {}

    Status read(const Json& item, const std::string& where) {
        if (!item.is_object()) return error("{} has to be an object", where);
        const Fields fields(item, where + ".");
        const std::string type = RL_TRY(fields.text("type", "message"));
        if (type == "message") return message(fields, item);
        if (type == "function_call") return call(fields);
        if (type == "function_call_output") return output(fields);
        if (type == "reasoning") return reasoning(fields);
        return error(
            "{}.type is \"{}\"; it has to be message, function_call, function_call_output or reasoning",
            where, type);
    }

private:
    Status message(const Fields& fields, const Json& item) {
        Json message = {{"role", RL_TRY(fields.text("role", "user"))},
                        {"content", item.contains("content") ? item["content"] : Json()}};
        if (message["role"] == "assistant" && !reasoning_.empty())
            message["reasoning_content"] = std::exchange(reasoning_, {});
        messages_.push_back(std::move(message));
        return {};
    }
    Status call(const Fields& fields) {
        const bool joins = !messages_.empty() && messages_.back()["role"] == "assistant";
        if (!joins) messages_.push_back({{"role", "assistant"}, {"content", ""}});
        Json& message = messages_.back();
        if (!reasoning_.empty()) message["reasoning_content"] = std::exchange(reasoning_, {});
        message["tool_calls"].push_back({{"id", RL_TRY(fields.text("call_id"))},
                                         {"type", "function"},
                                         {"function",
                                          {{"name", RL_TRY(fields.text("name"))},
                                           {"arguments", RL_TRY(fields.text("arguments", "{}"))}}}});
        return {};
    }
    Status output(const Fields& fields) {
        const Json* given = fields.find("output");
        messages_.push_back({{"role", "tool"},
                             {"tool_call_id", RL_TRY(fields.text("call_id"))},
                             {"content", given ? *given : Json("")}});
        return {};
    }
    Status reasoning(const Fields& fields) {
        for (const char* member : {"content", "summary"}) {
            const Json* parts = fields.find(member);
            if (!parts || !parts->is_array()) continue;
            for (const Json& part : *parts) reasoning_ += RL_TRY(Fields(part).text("text"));
            if (!reasoning_.empty()) break;
        }
        return {};
    }

    Json& messages_;
    std::string reasoning_;
};

Status read_input(const Fields& fields, Json& messages) {
    if (const std::string told = RL_TRY(fields.text("instructions")); !told.empty())
        messages.push_back({{"role", "system"}, {"content", told}});
    const Json* input = fields.find("input");
    if (!input) return error("input is missing: it has to be a text or a list of items");
    if (input->is_string()) {
        messages.push_back({{"role", "user"}, {"content", *input}});
        return {};
    }
    if (!input->is_array() || input->empty())
        return error("input is {}; it has to be a text or a list of items", excerpt(*input));
    ItemReader reader(messages);
    for (size_t i = 0; i < input->size(); ++i) RL_TRY(reader.read((*input)[i], fmt::format("input[{}]", i)));
    return {};
}

Status check_response_tools(const Fields& fields) {
    const Json* tools = fields.find("tools");
    if (!tools) return {};
    if (!tools->is_array()) return error("tools is {}; it has to be a list", excerpt(*tools));
    for (const Json& tool : *tools) {
        const std::string type = RL_TRY(Fields(tool).text("type", "function"));
        if (type != "function")
            return error(
                "tools has one of the type \"{}\", which only OpenAI's servers run; functions are possible",
                type);
    }
    return {};
}

// text.format has what response_format has elsewhere, one level higher.
Status read_text_format(const Fields& fields, Wishes& wishes) {
    const Json* text = fields.find("text");
    const Json* format = text ? Fields(*text).find("format") : nullptr;
    if (!format) return {};
    const Fields inner(*format, "text.format.");
    const std::string type = RL_TRY(inner.text("type", "text"));
    if (type == "text") return {};
    if (type != "json_object" && type != "json_schema")
        return error("text.format.type is \"{}\"; it has to be text, json_object or json_schema", type);
    const Json* schema = inner.find("schema");
    if (type == "json_schema" && !schema) return error("text.format has no schema");
    const Json any = Json::object();
    const bool strict = RL_TRY(inner.flag("strict", false));
    return hold_to_schema(wishes, type == "json_schema" ? *schema : any, strict, "text.format.schema");
}

}  // namespace

Result<ChatCall> read_response_call(const Json& body, const Service& service) {
    const Fields fields(body);
    for (const char* name : {"previous_response_id", "conversation"})
        RL_TRY(
            fields.refuse(name, "nothing is kept of earlier answers; send the whole conversation as input"));
    RL_TRY(fields.refuse("background", "an answer comes with its request"));
    RL_TRY(fields.refuse("prompt", "templates of prompts are not kept here; send input"));
    if (RL_TRY(fields.text("truncation", "disabled")) == "auto")
        return error("truncation \"auto\" is not supported: a prompt is never cut");
    ChatCall call;
    RL_TRY(read_input(fields, call.messages));
    call.wishes.sampling = service.served.sampling;
    RL_TRY(read_sampling(fields, call.wishes.sampling));
    call.wishes.max_tokens = RL_TRY(fields.integer("max_output_tokens", -1, 1, int64_t(1) << 40));
    call.wishes.stream = RL_TRY(fields.flag("stream", false));
    const int64_t top = RL_TRY(fields.integer("top_logprobs", 0, 0, 20));
    const std::vector<std::string> include = RL_TRY(fields.texts("include"));
    if (top > 0 || std::ranges::find(include, "message.output_text.logprobs") != include.end())
        call.wishes.logprobs = int32_t(top);
    RL_TRY(check_response_tools(fields));
    RL_TRY(read_tool_choice(fields, call));
    call.reasoning_budget = service.served.reasoning_budget;
    if (const Json* reasoning = fields.find("reasoning"))
        if (const Json* effort = Fields(*reasoning).find("effort")) {
            const Json holder = {{"reasoning_effort", *effort}};
            RL_TRY(read_reasoning(Fields(holder), call));
        }
    RL_TRY(read_text_format(fields, call.wishes));
    return call;
}

}  // namespace redline::serve
