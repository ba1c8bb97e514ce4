#include "text/chat/chat_template.h"

#include <algorithm>

namespace redline {

using jinja::Store;
using jinja::Value;

Result<ChatTemplate> ChatTemplate::parse(std::string_view source) {
    return ChatTemplate(RL_TRY(jinja::Template::parse(source)));
}

static constexpr std::string_view kKey = "tokenizer.chat_template";

static std::string key_of(std::string_view name) {
    return name == kUsualTemplate ? std::string(kKey) : fmt::format("{}.{}", kKey, name);
}

Result<std::string> chat_template_source(const Metadata& metadata, std::string_view name) {
    std::string source = RL_TRY(metadata.text(key_of(name), ""));
    const bool blank = source.find_first_not_of(" \t\r\n") == source.npos;
    return blank ? std::string() : source;
}

std::vector<std::string> chat_template_names(const Metadata& metadata) {
    std::vector<std::string> names;
    const auto add = [&](std::string_view name) {
        const Result<std::string> source = chat_template_source(metadata, name);
        if (source && !source.value().empty()) names.emplace_back(name);
    };
    add(kUsualTemplate);
    for (const auto& [key, value] : metadata.entries())
        if (key.size() > kKey.size() + 1 && key.starts_with(kKey) && key[kKey.size()] == '.')
            add(std::string_view(key).substr(kKey.size() + 1));
    return names;
}

bool has_chat_template(const Metadata& metadata) {
    const Result<std::string> source = chat_template_source(metadata);
    return !source || !source.value().empty();
}

Result<std::optional<ChatTemplate>> ChatTemplate::of(const Metadata& metadata, std::string_view name) {
    const std::string source = RL_TRY(chat_template_source(metadata, name));
    if (source.empty()) return std::optional<ChatTemplate>();
    Result<ChatTemplate> parsed = parse(source);
    if (!parsed) return error("{}: {}", key_of(name), parsed.error().message);
    return std::optional<ChatTemplate>(std::move(parsed).value());
}

// Templates write markers around roles ("<|" + role + "|>"), so that the program takes these few for words of
// the template.
static bool is_known_role(const Json& role) {
    static constexpr std::string_view kRoles[] = {"system", "user",      "assistant", "tool",
                                                  "model",  "developer", "function",  "ipython"};
    return role.is_string() && std::find(std::begin(kRoles), std::end(kRoles),
                                         role.get_ref<const std::string&>()) != std::end(kRoles);
}

enum class ArgumentForm : uint8_t { object, text };

// JSON in the form of Python's json.dumps, which models were trained with.
static Result<std::string> spaced_json(const Json& json) {
    Store store;
    const Value value = RL_TRY(jinja::value_of(store, json));
    jinja::TextBuilder out(store);
    RL_TRY(jinja::write_json(out, value, {}));
    return out.take_text().bytes;
}

static bool is_wrapped(const Json& call) {
    return call.contains("function") && call["function"].is_object();
}

// Clients send a call's arguments as an object, as text that is JSON, as null or an empty text for none, or
// not at all.
static Status fit_arguments(Json& message, ArgumentForm form) {
    const auto calls = message.find("tool_calls");
    if (calls == message.end() || !calls->is_array()) return {};
    for (Json& call : *calls) {
        if (!call.is_object()) continue;
        Json& arguments = is_wrapped(call) ? call["function"]["arguments"] : call["arguments"];
        if (arguments.is_string()) {
            const auto& text = arguments.get_ref<const std::string&>();
            Json read = text.find_first_not_of(" \t\r\n") == text.npos ? Json::object() : read_json(text);
            // A text that holds an object goes to the template as the client wrote it.
            if (read.is_object() && (form == ArgumentForm::object || read.empty()))
                arguments = std::move(read);
        }
        if (arguments.is_null()) arguments = Json::object();
        if (form == ArgumentForm::text && arguments.is_object()) arguments = RL_TRY(spaced_json(arguments));
    }
    return {};
}

// How often the arguments of calls, which begin with these keys, stand in the text as Python shows an object.
static size_t count_shown_by_python(const std::vector<TextPart>& parts, const Json& messages) {
    std::string text;
    for (const TextPart& part : parts) text += part.text;
    size_t count = 0;
    for (Json message : messages) {
        if (!message.contains("tool_calls") || !fit_arguments(message, ArgumentForm::object)) continue;
        for (const Json& call : message["tool_calls"]) {
            if (!call.is_object()) continue;
            const Json& arguments = (is_wrapped(call) ? call["function"] : call)["arguments"];
            if (!arguments.is_object() || arguments.empty()) continue;
            const std::string shown = fmt::format("{{'{}': ", arguments.begin().key());
            for (size_t at = text.find(shown); at != text.npos; at = text.find(shown, at + 1)) ++count;
        }
    }
    return count;
}

static Result<Value> message_value(Store& store, Json message, ArgumentForm form) {
    if (!message.is_object()) return error("a message must be an object with a role and a content");
    RL_TRY(fit_arguments(message, form));
    Value value = RL_TRY(jinja::value_of(store, message));
    if (message.contains("role") && is_known_role(message["role"]))
        value.dict().set(store, Value::literal("role"),
                         Value::literal(message["role"].get_ref<const std::string&>()));
    return value;
}

static Result<Value> variables_of(Store& store, const Tokenizer& tokenizer, const TemplateInput& input,
                                  ArgumentForm form) {
    if (!input.variables.is_object()) return error("the template's variables must be an object");
    Value all = RL_TRY(jinja::value_of(store, input.variables));
    const auto set = [&](std::string_view name, const Value& value) {
        all.dict().set(store, Value::literal(name), value);
    };
    std::vector<Value> messages;
    for (const Json& message : input.messages)
        messages.push_back(RL_TRY(message_value(store, message, form)));
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
    const auto attempt = [&](ArgumentForm form) -> Result<std::vector<TextPart>> {
        Store store;
        const Value variables = RL_TRY(variables_of(store, tokenizer, input, form));
        Result<std::vector<TextPart>> parts = parsed_.render(store, variables.dict(), input.now);
        if (!parts) return error("the chat template, {}", parts.error().message);
        return parts;
    };
    Result<std::vector<TextPart>> parts = attempt(ArgumentForm::object);
    const size_t shown = parts ? count_shown_by_python(parts.value(), input.messages) : 0;
    if (parts && shown == 0) return parts;
    // A few templates join the arguments of calls to other text, which they have to be for that.
    Result<std::vector<TextPart>> others = attempt(ArgumentForm::text);
    if (!others || (parts && count_shown_by_python(others.value(), input.messages) >= shown)) return parts;
    return others;
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
