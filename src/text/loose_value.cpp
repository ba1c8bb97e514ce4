#include "text/loose_value.h"

#include <string>

namespace redline {

namespace {

constexpr int kDeepest = 64;
constexpr std::string_view kGemmaQuote = "<|\"|>";

class LooseReader {
public:
    LooseReader(std::string_view text, size_t at) : text_(text), at_(at) {}

    std::optional<Json> value(int depth) {
        skip_spaces();
        if (at_ >= text_.size() || depth > kDeepest) return {};
        if (take(kGemmaQuote)) return quoted(kGemmaQuote);
        if (take("\"")) return quoted("\"");
        if (take("'")) return quoted("'");
        if (take("[")) return list(depth);
        if (take("{")) return members('}', ':', depth);
        return plain();
    }

    // Names and values up to `close`.
    std::optional<Json> members(char close, char between, int depth) {
        Json all = Json::object();
        for (skip_spaces(); !take({&close, 1}); skip_spaces()) {
            if (!all.empty() && !take(",")) return {};
            skip_spaces();
            const std::optional<std::string> name = key(between);
            skip_spaces();
            if (!name || !take({&between, 1})) return {};
            std::optional<Json> member = value(depth + 1);
            if (!member) return {};
            all[*name] = std::move(*member);
        }
        return all;
    }

    size_t at() const { return at_; }

private:
    void skip_spaces() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }

    bool take(std::string_view what) {
        if (text_.substr(std::min(at_, text_.size()), what.size()) != what) return false;
        at_ += what.size();
        return true;
    }

    std::optional<std::string> key(char between) {
        for (const std::string_view quote : {kGemmaQuote, std::string_view("\""), std::string_view("'")})
            if (take(quote)) return quoted(quote);
        const size_t end = text_.find_first_of(std::string(" \t\r\n,{}[]()\"'<") + between, at_);
        if (end == text_.npos || end == at_) return {};
        const std::string name(text_.substr(at_, end - at_));
        at_ = end;
        return name;
    }

    std::optional<std::string> quoted(std::string_view quote) {
        std::string out;
        for (; at_ < text_.size(); ++at_) {
            if (take(quote)) return out;
            // Gemma's texts know no escapes.
            if (text_[at_] == '\\' && quote.size() == 1 && at_ + 1 < text_.size()) {
                const char next = text_[++at_];
                out += next == 'n' ? '\n' : next == 't' ? '\t' : next == 'r' ? '\r' : next;
            } else {
                out += text_[at_];
            }
        }
        return {};
    }

    std::optional<Json> list(int depth) {
        Json all = Json::array();
        for (skip_spaces(); !take("]"); skip_spaces()) {
            if (!all.empty() && !take(",")) return {};
            std::optional<Json> item = value(depth + 1);
            if (!item) return {};
            all.push_back(std::move(*item));
        }
        return all;
    }

    std::optional<Json> plain() {
        const size_t end = std::min(text_.find_first_of(" \t\r\n,{}[]()", at_), text_.size());
        const std::string_view word = text_.substr(at_, end - at_);
        at_ = end;
        if (word == "true" || word == "True") return Json(true);
        if (word == "false" || word == "False") return Json(false);
        if (word == "null" || word == "None") return Json(nullptr);
        Json number = read_json(word);
        return number.is_number() ? std::optional<Json>(std::move(number)) : std::nullopt;
    }

    std::string_view text_;
    size_t at_;
};

}  // namespace

std::optional<Json> read_loose_value(std::string_view text, size_t& at) {
    LooseReader reader(text, at);
    std::optional<Json> value = reader.value(0);
    at = reader.at();
    return value;
}

std::optional<Json> read_loose_arguments(std::string_view text, size_t& at, char close) {
    LooseReader reader(text, at);
    std::optional<Json> all = reader.members(close, '=', 0);
    at = reader.at();
    return all;
}

size_t json_end(std::string_view text, size_t at, int deepest) {
    int depth = 0;
    bool quoted = false;
    for (; at < text.size(); ++at) {
        const char letter = text[at];
        if (quoted) {
            if (letter == '\\') ++at;
            quoted = letter != '"';
        } else if (letter == '"') {
            quoted = true;
        } else if (letter == '{' || letter == '[') {
            if (++depth > deepest) return text.npos;
        } else if (letter == '}' || letter == ']') {
            if (--depth <= 0) return at + 1;
        }
    }
    return text.npos;
}

}  // namespace redline
