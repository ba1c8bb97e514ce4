#include "cli/conversation_file.h"

#include "base/file.h"
#include "engine/saved_cache.h"
#include "json/json.h"
#include "text/tokens/unicode.h"

#include <limits>

namespace redline::cli {

static constexpr const char* kRoles[] = {"system", "user", "assistant"};

Json messages_json(std::span<const ChatMessage> messages) {
    Json all = Json::array();
    for (const ChatMessage& message : messages) {
        all.push_back({{"role", kRoles[size_t(message.role)]}, {"content", message.content}});
        if (!message.reasoning.empty()) all.back()["reasoning_content"] = message.reasoning;
    }
    return all;
}

static std::string dump(const Json& value, int indent) {
    return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string to_json_text(const SavedConversation& conversation) {
    Json all = {{"messages", messages_json(conversation.messages)},
                {"last_answer", conversation.last_answer},
                {"answers", conversation.answers},
                {"seed", conversation.seed}};
    if (conversation.unread > 0) all["unread"] = conversation.unread;
    if (!conversation.draft.empty()) all["draft"] = conversation.draft;
    if (!conversation.model.empty()) all["model"] = conversation.model;
    return dump(all, -1);
}

static std::optional<ChatMessage> read_message(const Json& read) {
    ChatMessage message;
    if (!read.is_object()) return {};
    const std::string role = read.value("role", Json()).is_string() ? read["role"].get<std::string>() : "";
    const Json content = read.value("content", Json());
    const Json reasoning = read.value("reasoning_content", Json(""));
    if (!content.is_string() || !reasoning.is_string()) return {};
    message.content = content.get<std::string>();
    message.reasoning = reasoning.get<std::string>();
    for (size_t i = 0; i < std::size(kRoles); ++i)
        if (role == kRoles[i]) {
            message.role = Role(i);
            return message;
        }
    return {};
}

Result<SavedConversation> read_conversation(const std::string& text, const std::string& path) {
    const Json read = read_json(text);
    const auto broken = [&](std::string_view what) {
        return error("{} holds no conversation: {}; /save writes one", path, what);
    };
    if (!read.is_object()) return broken("its text is no JSON object");
    SavedConversation saved;
    for (const Json& one : read.value("messages", Json::array())) {
        std::optional<ChatMessage> message = read_message(one);
        if (!message) return broken("a message has no role or content");
        saved.messages.push_back(std::move(*message));
    }
    for (const Json& token : read.value("last_answer", Json::array())) {
        if (!token.is_number_integer()) return broken("a token is no number");
        saved.last_answer.push_back(token.get<Token>());
    }
    const auto number = [&](const char* name, uint32_t& target) {
        const Json value = read.value(name, Json());
        const bool fits =
            value.is_number_unsigned() && value.get<uint64_t>() <= std::numeric_limits<uint32_t>::max();
        if (fits) target = value.get<uint32_t>();
        return fits;
    };
    if (!number("answers", saved.answers) || !number("seed", saved.seed))
        return broken("its counts are no numbers");
    // Files of earlier versions have neither of these.
    if (read.contains("unread") && (!number("unread", saved.unread) || saved.unread > saved.messages.size()))
        return broken("it leaves out more messages than it has");
    const Json draft = read.value("draft", Json(""));
    if (!draft.is_string()) return broken("its draft is no text");
    saved.draft = draft.get<std::string>();
    if (const Json model = read.value("model", Json()); model.is_string()) saved.model = model;
    return saved;
}

// The kind of file that this seems to be, as the end of a sentence.
static std::string other_kind(const std::string& path) {
    Result<File> file = File::open(path);
    if (!file) return "";
    if (file->size() == 0) return ": it is empty";
    std::string begin(std::min<uint64_t>(file->size(), 4), '\0');
    if (!file->read(0, std::as_writable_bytes(std::span(begin)))) return "";
    if (begin == "GGUF") return " but a model: -m takes it";
    if (begin[0] == '{' || begin[0] == '[') return ": it may be JSON, as /export writes it";
    return "";
}

std::string explain_unfit(const std::string& path, uint64_t fingerprint) {
    Result<SavedCache> saved = describe_saved_cache(path);
    if (!saved) return "";
    if (saved->kind == SavedCache::Kind::none)
        return fmt::format("{} is no session of redline{}", path, other_kind(path));
    if (saved->kind == SavedCache::Kind::other_version)
        return fmt::format("{} was saved by another version of redline, in a form that this one cannot read",
                           path);
    if (saved->fingerprint == fingerprint) return "";
    Result<SavedConversation> said = read_conversation(saved->text, path);
    const std::string model = said ? printable(said->model) : "";
    return fmt::format("{} was saved with another model{}{}", path, model.empty() ? "" : ", ", model);
}

static std::string markdown(const std::vector<ChatMessage>& messages) {
    constexpr const char* kTitles[] = {"System", "User", "Assistant"};
    std::string out;
    for (const ChatMessage& message : messages) {
        out += fmt::format("## {}\n\n", kTitles[size_t(message.role)]);
        if (!message.reasoning.empty()) {
            out += "> ";
            for (const char c : message.reasoning) out += c == '\n' ? std::string("\n> ") : std::string(1, c);
            out += "\n\n";
        }
        out += message.content + "\n\n";
    }
    if (!out.empty()) out.pop_back();
    return out;
}

Result<std::string> export_text(const std::vector<ChatMessage>& messages, const std::string& path) {
    if (path.ends_with(".json")) return dump({{"messages", messages_json(messages)}}, 2) + "\n";
    if (path.ends_with(".md")) return markdown(messages);
    return error("the ending of {} says no form: .md is Markdown, .json is JSON", path);
}

}  // namespace redline::cli
