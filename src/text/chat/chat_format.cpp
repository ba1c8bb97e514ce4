#include "text/chat/chat_format.h"

#include "text/chat/chat_family.h"
#include "text/chat/chat_template.h"
#include "text/tokens/unicode.h"

#include <algorithm>

namespace redline {
namespace {

constexpr std::string_view kThink = "<think>\n";
constexpr std::string_view kNoThought = "<think>\n\n</think>\n\n";

// A template's source in the form that markers are looked for: real line ends, one kind of quotes.
std::string normalised(std::string_view source) {
    std::string text;
    for (size_t i = 0; i < source.size(); ++i) {
        const char next = i + 1 < source.size() ? source[i + 1] : '\0';
        if (source[i] == '\\' && (next == 'n' || next == '\'' || next == '"' || next == '\\')) {
            text += next == 'n' ? '\n' : next == '\\' ? '\\' : '\'';
            ++i;
        } else {
            text += source[i] == '"' ? '\'' : source[i];
        }
    }
    return text;
}

bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != text.npos;
}

bool matches_template(const ChatStyle& style, std::string_view source) {
    return !style.in_template[0].empty() &&
           std::all_of(style.in_template.begin(), style.in_template.end(),
                       [&](std::string_view part) { return contains(source, part); });
}

bool is_marker(const Tokenizer& tokenizer, std::string_view text) {
    const TokenType type = tokenizer.type(tokenizer.find(text));
    return type == TokenType::control || type == TokenType::user_defined;
}

bool matches_vocabulary(const ChatStyle& style, const Tokenizer& tokenizer) {
    return !style.in_vocabulary[0].empty() &&
           std::all_of(style.in_vocabulary.begin(), style.in_vocabulary.end(),
                       [&](std::string_view part) { return part.empty() || is_marker(tokenizer, part); });
}

// The text behind `before` in the template, up to `after`, if it is plain text: no end of a string in
// between.
std::string literal_between(std::string_view source, std::string_view before, std::string_view after) {
    for (size_t at = source.find(before); at != source.npos; at = source.find(before, at + 1)) {
        const size_t begin = at + before.size();
        const size_t end = source.find(after, begin);
        if (end == source.npos) return {};
        const std::string_view text = source.substr(begin, end - begin);
        const auto has = [&](std::string_view part) { return contains(text, part); };
        const bool literal = !has("' ") && !has("'\n") && !has("{{") && !has("{%") && !has("%}");
        if (!text.empty() && text.front() != '\'' && literal) return std::string(text);
    }
    return {};
}

std::string trimmed(std::string_view text, bool left, bool right) {
    size_t begin = 0;
    size_t end = text.size();
    while (left && begin < end) {
        const Utf8Step step = utf8_step(text, begin);
        if (step.kind != Utf8Step::Kind::character || !is_white_space(step.code)) break;
        begin += step.bytes;
    }
    while (right && begin < end) {
        size_t last = end - 1;
        while (last > begin && (uint8_t(text[last]) & 0xC0) == 0x80) --last;
        const Utf8Step step = utf8_step(text.substr(0, end), last);
        if (step.kind != Utf8Step::Kind::character || !is_white_space(step.code)) break;
        end = last;
    }
    return std::string(text.substr(begin, end - begin));
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
    for (size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size()))
        text.replace(at, from.size(), to);
}

std::string known_formats() {
    return fmt::format("{}", fmt::join(ChatFormat::names(), ", "));
}

}  // namespace

// One conversation being written.
class ChatFormat::Renderer {
public:
    Renderer(const ChatFormat& format, const Tokenizer& tokenizer, const ChatOptions& options)
        : format_(format), style_(*format.style_), tokenizer_(tokenizer), options_(options) {}

    std::vector<TextPart> render(const std::vector<Message>& messages) {
        begin(messages);
        for (size_t i = 0; i < messages.size(); ++i) {
            const Message& message = messages[i];
            switch (message.role) {
                case Role::system:
                    add_system(message.text);
                    break;
                case Role::user:
                    add_user(message.text, i);
                    break;
                case Role::assistant:
                    add_assistant(message.text);
                    break;
            }
        }
        // System text that no user's turn came to take.
        if (has_held_) add_user("", last_user_);
        add(style_.answer, true);
        add(options_.thinking || format_.skip_thinking_.empty() ? format_.open_thinking_
                                                                : format_.skip_thinking_,
            true);
        return std::move(parts_);
    }

private:
    void begin(const std::vector<Message>& messages) {
        for (size_t i = 0; i < messages.size(); ++i)
            if (messages[i].role == Role::user) last_user_ = i;
        const bool bos = style_.bos || format_.bos_ || tokenizer_.adds_bos();
        if (bos && !style_.user.open.starts_with("{bos}")) add("{bos}", true);
        add(style_.begin, true);
        const bool given = !messages.empty() && messages[0].role == Role::system;
        if (given) return;
        if (format_.default_system_) add_turn(style_.system, *format_.default_system_);
        if (!format_.date_.empty()) add_system("");
    }

    void add(std::string_view text, bool scaffold) {
        std::string bytes(text);
        if (scaffold) {
            replace_all(bytes, "{bos}", tokenizer_.raw_text(tokenizer_.bos()));
            replace_all(bytes, "{eos}", tokenizer_.raw_text(tokenizer_.eos()));
        }
        if (bytes.empty()) return;
        if (!parts_.empty() && parts_.back().scaffold == scaffold)
            parts_.back().text += bytes;
        else
            parts_.push_back({std::move(bytes), scaffold});
    }

    void add_turn(const TurnMarkers& markers, std::string_view text) {
        add(markers.open, true);
        add(text, false);
        add(markers.close, true);
    }

    std::string cleaned(const std::string& text) const {
        return style_.trim || format_.trim_ ? trimmed(text, true, true) : text;
    }

    void add_system(const std::string& text) {
        if (style_.place != SystemPlace::system_turn) {
            held_ += (has_held_ ? "\n\n" : "") + text;
            has_held_ = true;
            return;
        }
        add(style_.system.open, true);
        if (!format_.date_.empty() && !dated_) {
            const std::string& date = options_.date.empty() ? format_.date_ : options_.date;
            add(fmt::format("Cutting Knowledge Date: {}\nToday Date: ", format_.knowledge_date_), true);
            add(date, false);
            add("\n\n", true);
            dated_ = true;
        }
        add(cleaned(text), false);
        add(style_.system.close, true);
    }

    void add_user(const std::string& text, size_t index) {
        const bool takes_system =
            has_held_ && (style_.place == SystemPlace::first_user || index == last_user_);
        add(style_.user.open, true);
        if (takes_system) {
            add_turn(style_.system, held_);
            has_held_ = false;
        }
        // White space around system and user text together is removed.
        const bool inner = takes_system && !style_.system.open.empty();
        add(style_.trim && inner ? trimmed(text, false, true) : cleaned(text), false);
        add(style_.user.close, true);
    }

    void add_assistant(const std::string& text) {
        add_turn(style_.assistant, cleaned(without_reasoning(text)));
    }

    std::string without_reasoning(const std::string& text) const {
        const size_t at = text.rfind(style_.thoughts_end);
        if (!format_.drop_reasoning_ || at == text.npos) return text;
        const std::string answer = text.substr(at + style_.thoughts_end.size());
        if (!format_.strip_lines_) return answer;
        return answer.substr(std::min(answer.find_first_not_of('\n'), answer.size()));
    }

    const ChatFormat& format_;
    const ChatStyle& style_;
    const Tokenizer& tokenizer_;
    const ChatOptions& options_;
    std::vector<TextPart> parts_;
    std::string held_;  // system text that waits for a user's turn
    bool has_held_ = false;
    bool dated_ = false;
    size_t last_user_ = 0;
};

Result<ChatFormat> ChatFormat::detect(const Metadata& metadata, const Tokenizer& tokenizer) {
    if (has_chat_template(metadata)) {
        const std::string source = normalised(RL_TRY(chat_template_source(metadata)));
        for (const ChatFamily& family : chat_families()) {
            const ChatStyle& style = family.style;
            if (!matches_template(style, source)) continue;
            ChatFormat format(&style, "the chat template");
            format.read_template(source);
            for (const std::string_view marker : style.in_vocabulary)
                if (!marker.empty() && !is_marker(tokenizer, marker))
                    format.notes_.push_back(
                        fmt::format("\"{}\" is no token of its own in this vocabulary: it is written as "
                                    "text, and the end of a "
                                    "turn may go unnoticed",
                                    marker));
            return format;
        }
        return error("the model's chat template is of no built-in format; known are {}", known_formats());
    }
    for (const ChatFamily& family : chat_families())
        if (matches_vocabulary(family.style, tokenizer)) return ChatFormat(&family.style, "the vocabulary");
    return error(
        "the model has no chat template, and its vocabulary no turn markers that are known: it may be no "
        "chat model; known formats are {}",
        known_formats());
}

// Reads the properties in which templates of one format differ.
void ChatFormat::read_template(const std::string& source) {
    bos_ = contains(source, "bos_token");
    trim_ = contains(source, "render_content(message.content, true)|trim");
    drop_reasoning_ = contains(source, style_->thoughts_end);
    strip_lines_ =
        !contains(source, "split('</think>')[-1]") || contains(source, "split('</think>')[-1].lstrip('\n')");
    if (style_->place == SystemPlace::system_turn && !style_->system.close.empty()) {
        std::string text = literal_between(source, style_->system.open, style_->system.close);
        if (!text.empty()) default_system_ = std::move(text);
    }
    const size_t answer = source.rfind("add_generation_prompt");
    const std::string_view tail = std::string_view(source).substr(std::min(answer, source.size()));
    if (contains(tail, fmt::format("{}'", kThink))) open_thinking_ = kThink;
    if (contains(tail, fmt::format("'{}'", kNoThought))) skip_thinking_ = kNoThought;
    if (style_->trim && contains(source, "Today Date: ")) {
        knowledge_date_ = literal_between(source, "Cutting Knowledge Date: ", "\n");
        date_ = literal_between(source, "date_string = '", "'");
    } else if (contains(source, "strftime_now") || contains(source, "Knowledge Cutoff")) {
        notes_.push_back(
            style_->begin.empty()
                ? "the model's template writes a system text with dates of its own, which is left out"
                : "the model's template tells the date, which is left out");
    }
}

Result<ChatFormat> ChatFormat::named(std::string_view name) {
    for (const ChatFamily& family : chat_families()) {
        const ChatStyle& style = family.style;
        if (name.empty() || (style.name != name && std::ranges::count(style.also, name) == 0)) continue;
        ChatFormat format(&style, "its name");
        format.default_system_ = style.default_system;
        return format;
    }
    return error("there is no chat format \"{}\"; known are {}", printable(name), known_formats());
}

std::vector<std::string> ChatFormat::names() {
    std::vector<std::string> all;
    for (const ChatFamily& family : chat_families())
        if (!family.style.name.empty()) all.emplace_back(family.style.name);
    std::sort(all.begin(), all.end());
    return all;
}

std::string_view ChatFormat::name() const {
    return style_->name;
}

bool ChatFormat::has_system() const {
    return style_->place == SystemPlace::system_turn;
}

bool ChatFormat::opens_thinking(const ChatOptions& options) const {
    return !open_thinking_.empty() && (options.thinking || skip_thinking_.empty());
}

std::vector<TextPart> ChatFormat::render(const Tokenizer& tokenizer, const std::vector<Message>& messages,
                                         const ChatOptions& options) const {
    return Renderer(*this, tokenizer, options).render(messages);
}

std::vector<Token> ChatFormat::encode(const Tokenizer& tokenizer, const std::vector<Message>& messages,
                                      const ChatOptions& options) const {
    return tokenizer.encode(render(tokenizer, messages, options), false);
}

}  // namespace redline
