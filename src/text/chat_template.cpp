#include "text/chat_template.h"

#include <algorithm>

namespace redline {

using jinja::Store;
using jinja::Value;

Result<ChatTemplate> ChatTemplate::parse(std::string_view source) {
    return ChatTemplate(RL_TRY(jinja::Template::parse(source)));
}

Result<std::optional<ChatTemplate>> ChatTemplate::of(const Metadata& metadata) {
    if (!metadata.has("tokenizer.chat_template")) return std::optional<ChatTemplate>();
    const std::string source = RL_TRY(metadata.text("tokenizer.chat_template"));
    Result<ChatTemplate> parsed = parse(source);
    if (!parsed) return error("tokenizer.chat_template: {}", parsed.error().message);
    return std::optional<ChatTemplate>(std::move(parsed).value());
}

// Templates write markers around roles ("<|" + role + "|>"), so that these few are the program's own words.
static bool is_known_role(const Json& role) {
    static constexpr std::string_view kRoles[] = {"system", "user",      "assistant", "tool",
                                                  "model",  "developer", "function",  "ipython"};
    return role.is_string() && std::find(std::begin(kRoles), std::end(kRoles),
                                         role.get_ref<const std::string&>()) != std::end(kRoles);
}

// Clients send a call's arguments as text that is JSON; templates go through them as an object.
static void read_arguments(Json& message) {
    const auto calls = message.find("tool_calls");
    if (calls == message.end() || !calls->is_array()) return;
    for (Json& call : *calls) {
        if (!call.is_object()) continue;
        Json& function = call.contains("function") && call["function"].is_object() ? call["function"] : call;
        const auto arguments = function.find("arguments");
        if (arguments == function.end() || !arguments->is_string()) continue;
        Json read = read_json(arguments->get_ref<const std::string&>());
        if (read.is_object()) *arguments = std::move(read);
    }
}

static Result<Value> message_value(Store& store, Json message, bool reads_arguments) {
    if (!message.is_object()) return error("a message must be an object with a role and a content");
    if (reads_arguments) read_arguments(message);
    Value value = RL_TRY(jinja::value_of(store, message));
    if (message.contains("role") && is_known_role(message["role"]))
        value.dict().set(store, Value::literal("role"),
                         Value::literal(message["role"].get_ref<const std::string&>()));
    return value;
}

static Result<Value> variables_of(Store& store, const Tokenizer& tokenizer, const TemplateInput& input,
                                  bool reads_arguments) {
    if (!input.variables.is_object()) return error("the template's variables must be an object");
    Value all = RL_TRY(jinja::value_of(store, input.variables));
    const auto set = [&](std::string_view name, const Value& value) {
        all.dict().set(store, Value::literal(name), value);
    };
    std::vector<Value> messages;
    for (const Json& message : input.messages)
        messages.push_back(RL_TRY(message_value(store, message, reads_arguments)));
    set("messages", store.list(std::move(messages)));
    set("tools", RL_TRY(jinja::value_of(store, input.tools)));
    if (!input.variables.contains("documents")) set("documents", Value::none());
    set("add_generation_prompt", Value::boolean(input.answer));
    set("bos_token", Value::literal(tokenizer.raw_text(tokenizer.bos())));
    set("eos_token", Value::literal(tokenizer.raw_text(tokenizer.eos())));
    return all;
}

Result<std::vector<TextPart>> ChatTemplate::render(const Tokenizer& tokenizer,
                                                   const TemplateInput& input) const {
    const auto attempt = [&](bool reads_arguments) -> Result<std::vector<TextPart>> {
        Store store;
        const Value variables = RL_TRY(variables_of(store, tokenizer, input, reads_arguments));
        Result<std::vector<TextPart>> parts = parsed_.render(store, variables.dict(), input.now);
        if (!parts) return error("the chat template, {}", parts.error().message);
        return parts;
    };
    Result<std::vector<TextPart>> parts = attempt(true);
    if (parts) return parts;
    // A few templates join the arguments of calls to other text, which they have to be for that.
    Result<std::vector<TextPart>> others = attempt(false);
    return others ? others : parts;
}

Result<std::vector<Token>> ChatTemplate::encode(const Tokenizer& tokenizer,
                                                const TemplateInput& input) const {
    return encode_chat(tokenizer, RL_TRY(render(tokenizer, input)));
}

std::vector<Token> encode_chat(const Tokenizer& tokenizer, std::span<const TextPart> parts) {
    std::vector<Token> tokens = tokenizer.encode(parts, false);
    const bool has_bos = !tokens.empty() && tokens.front() == tokenizer.bos();
    if (tokenizer.adds_bos() && !has_bos) tokens.insert(tokens.begin(), tokenizer.bos());
    return tokens;
}

Json messages_json(const std::vector<Message>& messages) {
    static constexpr const char* kRoles[] = {"system", "user", "assistant"};
    Json all = Json::array();
    for (const Message& message : messages)
        all.push_back({{"role", kRoles[size_t(message.role)]}, {"content", message.text}});
    return all;
}

}  // namespace redline
