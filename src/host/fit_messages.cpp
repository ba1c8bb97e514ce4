#include "host/fit_messages.h"

#include <algorithm>
#include <map>
#include <set>

namespace redline {

namespace {

bool has_null_content(const Json& message) {
    return message.contains("content") && message["content"].is_null();
}

size_t count_none(const std::vector<TextPart>& parts) {
    std::string text;
    for (const TextPart& part : parts) text += part.text;
    size_t count = 0;
    for (size_t at = text.find("None"); at != text.npos; at = text.find("None", at + 1)) ++count;
    return count;
}

bool is_short_id(const std::string& id) {
    const auto plain = [](unsigned char c) { return c < 0x80 && std::isalnum(c); };
    return id.size() == 9 && std::all_of(id.begin(), id.end(), plain);
}

// The ids of the conversation's calls, wherever they stand.
template <class Visit>
void visit_ids(Json& messages, const Visit& visit) {
    const auto look = [&](Json& object, const char* key) {
        const auto found = object.find(key);
        if (found != object.end() && found->is_string()) visit(found->get_ref<std::string&>());
    };
    for (Json& message : messages) {
        if (message.contains("tool_calls"))
            for (Json& call : message["tool_calls"]) look(call, "id");
        look(message, "tool_call_id");
    }
}

// Gives every id that is not of nine letters such a one. False: there are none.
bool shorten_ids(Json& messages) {
    std::set<std::string> taken;
    visit_ids(messages, [&](const std::string& id) { taken.insert(id); });
    std::map<std::string, std::string> given;
    size_t number = 0;
    visit_ids(messages, [&](std::string& id) {
        if (is_short_id(id)) return;
        std::string& other = given[id];
        if (other.empty()) {
            do other = fmt::format("call{:05}", ++number);
            while (!taken.insert(other).second);
        }
        id = other;
    });
    return !given.empty();
}

}  // namespace

std::string content_text(const Json& content) {
    if (content.is_string()) return content.get<std::string>();
    std::string all;
    if (!content.is_array()) return all;
    for (size_t i = 0; i < content.size(); ++i)
        all += (i > 0 ? "\n" : "") + content[i].value("text", std::string());
    return all;
}

void fit_contents(Json& messages, const TemplateReads& reads) {
    const auto has = [](const std::vector<std::string>& roles, const std::string& role) {
        return std::find(roles.begin(), roles.end(), role) != roles.end();
    };
    for (Json& message : messages) {
        if (!message.contains("content")) continue;
        const std::string role = message.value("role", std::string());
        Json& content = message["content"];
        if (content.is_array() && !has(reads.parts, role)) content = content_text(content);
        if (content.is_string() && has(reads.parts_only, role))
            content = Json::array({{{"type", "text"}, {"text", content}}});
    }
}

Result<std::vector<TextPart>> render_fitted(const ChatTemplate& parsed, const Tokenizer& tokenizer,
                                            TemplateInput input) {
    Result<std::vector<TextPart>> parts = parsed.render(tokenizer, input);
    if (std::any_of(input.messages.begin(), input.messages.end(), has_null_content)) {
        TemplateInput filled = input;
        for (Json& message : filled.messages)
            if (has_null_content(message)) message["content"] = "";
        Result<std::vector<TextPart>> others = parsed.render(tokenizer, filled);
        if (others && (!parts || count_none(others.value()) < count_none(parts.value()))) return others;
        if (!parts) input = std::move(filled);
    }
    if (parts || !shorten_ids(input.messages)) return parts;
    Result<std::vector<TextPart>> others = parsed.render(tokenizer, input);
    return others ? others : parts;
}

}  // namespace redline
