#include "serve/api/prompt.h"

#include "host/messages.h"
#include "text/chat/parameter_value.h"

#include <algorithm>

namespace redline::serve {

// Leaves those of the functions that {"type": "allowed_tools", ...} names, whose members stand within another
// "allowed_tools" in chats.
static Status read_allowed_tools(const Fields& choice, ChatCall& call) {
    const Json* within = choice.find("allowed_tools");
    const Fields inner = within ? Fields(*within, "tool_choice.allowed_tools.") : choice;
    const std::string mode = RL_TRY(inner.text("mode"));
    if (mode != "auto" && mode != "required")
        return error("{} is \"{}\"; it has to be auto or required", inner.path("mode"), mode);
    if (mode == "required") call.choice = ChatCall::Choice::required;
    const Json* named = inner.find("tools");
    if (!named || !named->is_array() || named->empty())
        return error("{} has to be a list of functions", inner.path("tools"));
    Json allowed = Json::array();
    for (const Json& each : *named) {
        const Json* function = Fields(each).find("function");
        const std::string name =
            RL_TRY(Fields(function ? *function : each, inner.path("tools.")).text("name"));
        for (const Json& tool : call.tools)
            if (tool["function"]["name"] == name) allowed.push_back(tool);
        if (!find_function(call.tools, name))
            return error("tool_choice names the function \"{}\", which tools does not have", name);
    }
    call.tools = std::move(allowed);
    return {};
}

Status read_tool_choice(const Fields& fields, ChatCall& call) {
    if (const Json* tools = fields.find("tools"); tools && !tools->empty())
        call.tools = RL_TRY(read_functions(*tools, "tools"));
    call.parallel = RL_TRY(fields.flag("parallel_tool_calls", true));
    const Json* choice = fields.find("tool_choice");
    if (!choice) return {};
    const std::string word = choice->is_string() ? choice->get<std::string>() : "";
    if (word == "auto") return {};
    if (word == "none") {
        call.choice = ChatCall::Choice::none;
        return {};
    }
    const Fields form(*choice, "tool_choice.");
    if (RL_TRY(form.text("type")) == "allowed_tools") return read_allowed_tools(form, call);
    call.choice = ChatCall::Choice::required;
    if (word != "required") {
        const Json* inner = choice->is_object() ? Fields(*choice).find("function") : nullptr;
        const Json* name = inner && inner->is_object() ? Fields(*inner).find("name") : nullptr;
        if (!name && choice->is_object()) name = Fields(*choice).find("name");
        if (!name || !name->is_string())
            return error(
                "tool_choice is {}; it has to be none, auto, required, or {{\"type\": \"function\", "
                "\"function\": {{\"name\": ...}}}}",
                excerpt(*choice));
        call.function = name->get<std::string>();
    }
    if (call.tools.empty()) return error("tool_choice needs tools, and there are none");
    if (!call.function.empty() && !find_function(call.tools, call.function))
        return error("tool_choice names the function \"{}\", which tools does not have", call.function);
    return {};
}

Status read_reasoning(const Fields& fields, ChatCall& call) {
    if (const Json* variables = fields.find("chat_template_kwargs")) {
        if (!variables->is_object())
            return error("chat_template_kwargs is {}; it has to be an object", excerpt(*variables));
        call.variables = *variables;
        for (const char* name : {"enable_thinking", "thinking"})
            if (const auto found = variables->find(name); found != variables->end() && found->is_boolean())
                call.thinking = found->get<bool>();
    }
    const std::string effort = RL_TRY(fields.text("reasoning_effort"));
    if (effort == "none") {
        call.thinking = false;
    } else if (!effort.empty()) {
        constexpr std::string_view kEfforts[] = {"minimal", "low", "medium", "high", "xhigh", "max"};
        if (std::ranges::find(kEfforts, effort) == std::end(kEfforts))
            return error("reasoning_effort is \"{}\"; it has to be none, {}", effort,
                         fmt::join(kEfforts, ", "));
        // Templates know three of them.
        call.variables["reasoning_effort"] = effort == "minimal"                    ? "low"
                                             : effort == "xhigh" || effort == "max" ? "high"
                                                                                    : effort;
    }
    const std::string form = RL_TRY(fields.text("reasoning_format", "auto"));
    if (form != "auto" && form != "deepseek" && form != "none")
        return error("reasoning_format is \"{}\"; it has to be auto, deepseek or none", form);
    call.raw_reasoning = form == "none";
    for (const char* name : {"reasoning_budget_tokens", "thinking_budget_tokens", "reasoning_budget"})
        if (fields.has(name)) call.reasoning_budget = RL_TRY(fields.integer(name, -1, -1, int64_t(1) << 40));
    return {};
}

Status check_conversation(ChatCall& call) {
    ChatRequest read = RL_TRY(read_chat_request(call.messages, "messages", !call.continues));
    call.messages = std::move(read.messages);
    if (!call.continues) return {};
    const Json& last = call.messages.back();
    if (last.value("role", "") != "assistant" || !last.value("content", Json()).is_string())
        return error(
            "continue_final_message needs a last message of the role assistant whose content is a text");
    return {};
}

namespace {

// A schema to be put into another one: its references count from its beginning ("#/$defs/City") there, too.
Json part_of_schema(Json schema, std::string_view kind, size_t index) {
    if (!schema.is_object() || schema.empty()) return {{"type", "object"}};
    if (!schema.contains("$id")) schema["$id"] = fmt::format("{}:{}", kind, index);
    return schema;
}

// An answer that is nothing but the JSON of a call of one of the functions, which parse_tool_calls() reads
// for all families, or JSON of the schema, where there is one and no call is required.
Result<std::string> call_grammar(const ChatCall& call) {
    Json any = Json::array();
    for (const Json& tool : call.tools) {
        const Json& function = tool["function"];
        const std::string name = function.value("name", "");
        if (!call.function.empty() && call.function != name) continue;
        Json parameters =
            part_of_schema(function.value("parameters", Json::object()), "function", any.size());
        any.push_back({{"type", "object"},
                       {"properties", {{"name", {{"const", name}}}, {"arguments", std::move(parameters)}}},
                       {"required", {"name", "arguments"}},
                       {"additionalProperties", false}});
    }
    if (call.choice != ChatCall::Choice::required)
        any.push_back(part_of_schema(call.wishes.schema, "answer", 0));
    return grammar_of(any.size() == 1 ? any[0] : Json{{"anyOf", any}}, false, "tools");
}

}  // namespace

Result<PreparedPrompt> prepare_chat(Service& service, ChatCall& call) {
    RL_TRY(check_conversation(call));
    if (call.choice == ChatCall::Choice::none) call.tools = nullptr;
    const bool by_schema = !call.wishes.schema.is_null();
    if (!call.tools.empty() && !call.wishes.grammar.empty() && !by_schema)
        return error(
            "tools and a grammar contradict each other, for such an answer can call nothing: leave one of them "
            "out, or set tool_choice to none");
    ChatWriter writer = RL_TRY(service.writer(call.thinking, call.variables));
    Json messages = call.messages;
    std::string begun;
    if (call.continues) {
        begun = messages.back()["content"].get<std::string>();
        messages.erase(messages.size() - 1);
        if (messages.empty()) return error("messages has nothing before the message that is to be continued");
    }
    WrittenChat written = RL_TRY(writer.write(std::move(messages), call.tools));
    PreparedPrompt prompt;
    prompt.parts = std::move(written.parts);
    prompt.tokens = std::move(written.tokens);
    if (!begun.empty()) {
        prompt.parts.push_back({begun, false});
        prompt.tokens = encode_chat(service.tokenizer(), prompt.parts);
    }
    if (!call.raw_reasoning) prompt.reasoning = writer.reasoning();
    prompt.reasoning_budget = writer.reasoning_budget(call.reasoning_budget);
    prompt.reasons = writer.wants_thinking() && prompt.reasoning_budget != 0 && begun.empty();
    if (writer.reasoning()) prompt.shown = writer.reasoning()->control_tokens(service.tokenizer());
    prompt.tools = call.tools;
    prompt.parallel = call.parallel;
    if (!call.tools.empty())
        for (const Token token : tool_call_tokens(service.tokenizer())) prompt.shown.push_back(token);
    if (!call.tools.empty() && (call.choice == ChatCall::Choice::required || by_schema))
        call.wishes.grammar = RL_TRY(call_grammar(call));
    return prompt;
}

}  // namespace redline::serve
