#include "text/chat/loose_value.h"

#include "text/tokens/unicode.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace redline {

namespace {

constexpr int kDeepest = 64;
constexpr std::string_view kGemmaQuote = "<|\"|>", kSpaces = " \t\r\n";

enum class Notation : uint8_t { json, python, gemma };

// One text in quotes. Python and JSON share their escapes but for a few.
class QuotedReader {
public:
    QuotedReader(std::string_view text, size_t at, bool json, Mending& mending)
        : text_(text), at_(at), json_(json), mending_(mending) {}

    // The cursor stands behind the opening quote, and is left behind the closing one.
    std::optional<std::string> read(char quote) {
        for (; at_ < text_.size(); ++at_) {
            const char c = text_[at_];
            if (c == quote) {
                ++at_;
                return finish();
            }
            if (c == '\\') {
                if (!read_escape()) return {};
                continue;
            }
            if (json_ && (c == '\n' || c == '\r')) slip("a text has a raw line end");
            if (json_ && uint8_t(c) < 0x20 && c != '\n' && c != '\r')
                slip("a text has a raw control character");
            out_ += c;
        }
        return {};
    }

    size_t at() const { return at_; }

private:
    void slip(std::string what) {
        std::vector<std::string>& all = mending_.slips;
        if (std::find(all.begin(), all.end(), what) == all.end()) all.push_back(std::move(what));
    }

    // Beside a backslash that stands for itself the escapes of letters may stand for themselves, too.
    std::optional<std::string> finish() {
        if (json_ && literal_ && letter_) {
            mending_.problem = "has a text whose backslashes may be escapes or not";
            return {};
        }
        return std::move(out_);
    }

    // Hexadecimal digits from the place `from` on.
    std::optional<uint32_t> hex(size_t from, size_t digits) const {
        if (from + digits > text_.size()) return {};
        uint32_t code = 0;
        for (size_t i = from; i < from + digits; ++i) {
            if (!std::isxdigit(uint8_t(text_[i]))) return {};
            code = code * 16 +
                   uint32_t(std::isdigit(uint8_t(text_[i])) ? text_[i] - '0' : (text_[i] | 32) - 'a' + 10);
        }
        return code;
    }

    // A character by its number; of two that are halves of one, both.
    bool read_code(size_t digits) {
        std::optional<uint32_t> code = hex(at_ + 1, digits);
        if (!code) return keep_backslash();
        at_ += digits;
        const bool high = digits == 4 && *code >= 0xD800 && *code < 0xDC00;
        if (high && text_.substr(at_ + 1, 2) == "\\u") {
            const std::optional<uint32_t> low = hex(at_ + 3, 4);
            if (low && *low >= 0xDC00 && *low < 0xE000) {
                code = 0x10000 + ((*code - 0xD800) << 10) + (*low - 0xDC00);
                at_ += 6;
            }
        }
        if ((*code >= 0xD800 && *code < 0xE000) || *code > 0x10FFFF) return false;
        append_utf8(out_, char32_t(*code));
        letter_ = true;
        return true;
    }

    // Python reads one digit to three.
    void read_octal() {
        char32_t code = 0;
        size_t digits = 0;
        for (; digits < 3 && at_ < text_.size() && is_octal(text_[at_]); ++digits, ++at_)
            code = code * 8 + char32_t(text_[at_] - '0');
        --at_;
        append_utf8(out_, code);
    }

    static bool is_octal(char c) { return c >= '0' && c <= '7'; }

    bool keep_backslash() {
        literal_ = true;
        if (json_) slip(fmt::format("\\{} is no escape, and its backslash is kept", text_[at_]));
        out_ += '\\';
        out_ += text_[at_];
        return true;
    }

    bool read_escape() {
        if (++at_ >= text_.size()) return false;
        static constexpr std::string_view kLetters = "bfnrt", kValues = "\b\f\n\r\t";
        const char c = text_[at_];
        if (const size_t found = kLetters.find(c); found != kLetters.npos) {
            letter_ = true;
            out_ += kValues[found];
            return true;
        }
        if (c == '"' || c == '\\' || c == '\'' || (c == '/' && json_)) {
            if (c == '\'' && json_) slip("\\' is no escape, and stands for '");
            out_ += c;
            return true;
        }
        if (c == 'u') return read_code(4);
        if (c == 'x') {
            const bool code = hex(at_ + 1, 2).has_value();
            if (code && json_) slip("\\x is no escape, and is read as Python's");
            return read_code(2);
        }
        if (json_) return uint8_t(c) > ' ' && uint8_t(c) < 0x7F && keep_backslash();
        if (c == 'U') return read_code(8);
        if (is_octal(c)) {
            read_octal();
            return true;
        }
        static constexpr std::string_view kFurther = "av", kFurtherValues = "\a\v";
        const size_t found = kFurther.find(c);
        if (found == kFurther.npos) return keep_backslash();
        out_ += kFurtherValues[found];
        return true;
    }

    std::string_view text_;
    size_t at_;
    const bool json_;
    Mending& mending_;
    std::string out_;
    bool letter_ = false;   // an escape by a letter, as of a line end
    bool literal_ = false;  // a backslash that stands for itself
};

class LooseReader {
public:
    LooseReader(std::string_view text, size_t at, Notation notation, Mending& mending)
        : text_(text), at_(at), notation_(notation), mending_(mending) {}

    std::optional<Json> value(int depth) {
        skip_spaces();
        if (at_ >= text_.size() || depth > kDeepest) return {};
        if (is_gemma() && take(kGemmaQuote)) return gemma_text();
        if (take("\"")) return quoted('"');
        if (take("'")) return quoted('\'');
        if (take("[")) return list(depth);
        if (take("{")) return members('}', ':', depth);
        return plain();
    }

    // Names and values up to `close`.
    std::optional<Json> members(char close, char between, int depth) {
        Json all = Json::object();
        bool more = !closes(close, Before::nothing);
        while (more) {
            const std::optional<std::string> name = key();
            skip_spaces();
            if (!name || !take({&between, 1})) return {};
            std::optional<Json> member = value(depth + 1);
            if (!member) return {};
            all[*name] = std::move(*member);
            if (!goes_on(close, more)) return {};
        }
        return all;
    }

    size_t at() const { return at_; }

private:
    bool is_json() const { return notation_ == Notation::json; }
    bool is_gemma() const { return notation_ == Notation::gemma; }
    std::string_view rest() const { return text_.substr(std::min(at_, text_.size())); }
    void skip_spaces() { at_ = std::min(text_.find_first_not_of(kSpaces, at_), text_.size()); }

    void slip(std::string what) {
        std::vector<std::string>& all = mending_.slips;
        if (std::find(all.begin(), all.end(), what) == all.end()) all.push_back(std::move(what));
    }

    bool take(std::string_view what) {
        if (!rest().starts_with(what)) return false;
        at_ += what.size();
        return true;
    }

    enum class Before : uint8_t { nothing, value, comma };

    // True when the bracket is closed here.
    bool closes(char close, Before before) {
        skip_spaces();
        if (take({&close, 1})) {
            if (before == Before::comma && is_json()) slip(fmt::format("a comma stands before {}", close));
            return true;
        }
        // A mark ends the call, and with it what is open.
        const bool marked = is_json() && before == Before::value && rest().starts_with("<");
        if (marked) slip(fmt::format("{} is missing", close));
        return marked;
    }

    // Behind a value. False: neither the end nor a comma follows.
    bool goes_on(char close, bool& more) {
        more = !closes(close, Before::value);
        if (!more) return true;
        if (!take(",")) return false;
        more = !closes(close, Before::comma);
        return true;
    }

    std::optional<std::string> quoted(char quote) {
        if (quote == '\'' && is_json()) slip("single quotes stand for double ones");
        QuotedReader reader(text_, at_, is_json(), mending_);
        std::optional<std::string> out = reader.read(quote);
        at_ = reader.at();
        return out;
    }

    // Gemma's texts know no escapes.
    std::optional<std::string> gemma_text() {
        const size_t end = text_.find(kGemmaQuote, at_);
        if (end == text_.npos) return {};
        std::string out(text_.substr(at_, end - at_));
        at_ = end + kGemmaQuote.size();
        return out;
    }

    std::optional<Json> list(int depth) {
        Json all = Json::array();
        bool more = !closes(']', Before::nothing);
        while (more) {
            std::optional<Json> item = value(depth + 1);
            if (!item) return {};
            all.push_back(std::move(*item));
            if (!goes_on(']', more)) return {};
        }
        return all;
    }

    std::optional<std::string> key() {
        if (is_gemma() && take(kGemmaQuote)) return gemma_text();
        for (const char quote : {'"', '\''})
            if (take({&quote, 1})) return quoted(quote);
        const size_t end = is_gemma() ? bare_end() : text_.find_first_of(" \t\r\n,{}[]()\"'<:=", at_);
        if (end == text_.npos || (end == at_ && !is_gemma())) return {};
        const std::string name(text_.substr(at_, end - at_));
        if (is_json()) {
            if (std::isdigit(uint8_t(name[0]))) return {};
            slip(fmt::format("the key {} has no quotes", name));
        }
        at_ = end;
        return name;
    }

    // Gemma writes a key as it is: it ends at the first colon that a value follows.
    size_t bare_end() const {
        for (size_t at = text_.find(':', at_); at != text_.npos; at = text_.find(':', at + 1)) {
            const std::string_view behind =
                text_.substr(std::min(text_.find_first_not_of(kSpaces, at + 1), text_.size()));
            static constexpr std::string_view kBegin[] = {"<|\"|>", "\"",    "'",     "{",    "[",   "true",
                                                          "True",   "false", "False", "null", "None"};
            const auto begins = [&](std::string_view begin) { return behind.starts_with(begin); };
            if (std::any_of(std::begin(kBegin), std::end(kBegin), begins)) return at;
            if (!behind.empty() && (behind[0] == '-' || std::isdigit(uint8_t(behind[0])))) return at;
        }
        return text_.npos;
    }

    std::optional<Json> plain() {
        const size_t end = std::min(text_.find_first_of(" \t\r\n,{}[]()<", at_), text_.size());
        const std::string_view word = text_.substr(at_, end - at_);
        at_ = end;
        static constexpr std::pair<std::string_view, std::string_view> kPython[] = {
            {"True", "true"}, {"False", "false"}, {"None", "null"}};
        for (const auto& [python, json] : kPython) {
            if (word != python) continue;
            if (is_json()) slip(fmt::format("{} stands for {}", python, json));
            return read_json(json);
        }
        if (word == "true" || word == "false" || word == "null") return read_json(word);
        Json number = read_json(word);
        return number.is_number() ? std::optional<Json>(std::move(number)) : std::nullopt;
    }

    std::string_view text_;
    size_t at_;
    const Notation notation_;
    Mending& mending_;
};

std::optional<Json> read_value(std::string_view text, size_t& at, Notation notation, Mending& mending) {
    LooseReader reader(text, at, notation, mending);
    std::optional<Json> value = reader.value(0);
    at = reader.at();
    return value;
}

}  // namespace

std::optional<Json> read_gemma_value(std::string_view text, size_t& at) {
    Mending none;
    return read_value(text, at, Notation::gemma, none);
}

std::optional<Json> read_mended_json(std::string_view text, size_t& at, Mending& mending) {
    return read_value(text, at, Notation::json, mending);
}

std::optional<Json> read_loose_arguments(std::string_view text, size_t& at, char close) {
    Mending none;
    LooseReader reader(text, at, Notation::python, none);
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
