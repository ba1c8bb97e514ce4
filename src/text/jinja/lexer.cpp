#include "text/jinja/lexer.h"

#include "text/tokens/unicode.h"

#include <algorithm>
#include <charconv>

namespace redline::jinja {
namespace {

using LexemeKind = Lexeme::Kind;

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

bool starts_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80);
}

// Converts line ends to \n, and drops one at the end of the template.
std::string unified(std::string_view source) {
    std::string text;
    for (size_t i = 0; i < source.size(); ++i) {
        const bool pair = source[i] == '\r' && i + 1 < source.size() && source[i + 1] == '\n';
        if (!pair) text += source[i] == '\r' ? '\n' : source[i];
    }
    if (text.ends_with('\n')) text.pop_back();
    return text;
}

size_t white_end(std::string_view text, size_t at) {
    while (at < text.size()) {
        const Utf8Step step = utf8_step(text, at);
        if (!is_white_space(step.code)) break;
        at += step.bytes;
    }
    return at;
}

size_t without_white_end(std::string_view text, size_t begin) {
    size_t kept = begin;
    for (size_t at = begin; at < text.size();) {
        const Utf8Step step = utf8_step(text, at);
        at += step.bytes;
        if (!is_white_space(step.code)) kept = at;
    }
    return kept;
}

class Lexer {
public:
    explicit Lexer(std::string source) : source_(std::move(source)) {}

    Result<std::vector<Lexeme>> run() {
        while (at_ < source_.size()) RL_TRY(step());
        push(LexemeKind::end, source_.size());
        return std::move(out_);
    }

private:
    std::string_view rest() const { return std::string_view(source_).substr(at_); }
    bool ahead(std::string_view text) const { return rest().starts_with(text); }

    // Must be called with ascending positions.
    Position position(size_t at) {
        for (; counted_ < at; ++counted_) {
            if (source_[counted_] == '\n')
                here_ = {here_.line + 1, 1};
            else if ((source_[counted_] & 0xC0) != 0x80)
                ++here_.column;
        }
        return here_;
    }

    Error fault(size_t at, std::string message) { return located(position(at), Error{std::move(message)}); }

    Lexeme& push(LexemeKind kind, size_t at, std::string text = {}) {
        Lexeme lexeme;
        lexeme.kind = kind;
        lexeme.text = std::move(text);
        lexeme.at = position(at);
        return out_.emplace_back(std::move(lexeme));
    }

    // Cuts the text up to the next tag, then that tag's opening.
    Status step() {
        const size_t begin = at_;
        size_t tag = source_.find('{', begin);
        for (; tag != source_.npos; tag = source_.find('{', tag + 1)) {
            const char next = tag + 1 < source_.size() ? source_[tag + 1] : '\0';
            if (next == '%' || next == '{' || next == '#') break;
        }
        if (tag == source_.npos) {
            push(LexemeKind::data, begin, source_.substr(begin));
            at_ = source_.size();
            return {};
        }
        const char opening = source_[tag + 1];
        const char control = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
        const size_t end = text_end(begin, tag, control, opening == '{');
        if (end > begin) push(LexemeKind::data, begin, source_.substr(begin, end - begin));
        at_ = tag + (control == '-' || control == '+' ? 3 : 2);
        if (opening == '#') return skip_comment(tag);
        if (opening == '%') {
            const size_t raw = raw_begin();
            if (raw) return take_raw(tag, raw);
        }
        push(opening == '%' ? LexemeKind::block_begin : LexemeKind::output_begin, tag);
        return take_tag(opening == '%' ? "%}" : "}}");
    }

    // The end of the text before a tag: "-" removes all white space, lstrip_blocks the indentation.
    size_t text_end(size_t begin, size_t tag, char control, bool output) const {
        const std::string_view before = std::string_view(source_).substr(0, tag);
        if (control == '-') return without_white_end(before, begin);
        if (control == '+' || output) return tag;
        // Does not search back to the beginning of the source: a line of many tags would take quadratic time.
        const size_t line_end = before.substr(begin).rfind('\n');
        const bool has_line = line_end != before.npos;
        if (!has_line && !line_starting_) return tag;
        const size_t line = has_line ? begin + line_end + 1 : begin;
        return white_end(before, line) == tag ? line : tag;
    }

    // After the end of a tag "-" skips the white space behind it, trim_blocks one line end.
    void leave_tag(char control, bool trims) {
        const size_t begin = at_;
        if (control == '-')
            at_ = white_end(source_, at_);
        else if (trims && control != '+' && ahead("\n"))
            ++at_;
        line_starting_ = at_ > begin && source_[at_ - 1] == '\n';
    }

    Status skip_comment(size_t tag) {
        const size_t end = source_.find("#}", at_);
        if (end == source_.npos) return fault(tag, "the comment has no end \"#}\"");
        const char control = end > at_ ? source_[end - 1] : '\0';
        at_ = end + 2;
        leave_tag(control, true);
        return {};
    }

    // The end of "raw %}", or 0 when the source has something else here.
    size_t raw_begin() const {
        size_t at = white_end(source_, at_);
        const std::string_view all = source_;
        if (!all.substr(at).starts_with("raw")) return 0;
        at = white_end(source_, at + 3);
        if (all.substr(at).starts_with("%}")) return at + 2;
        return all.substr(at).starts_with("-%}") ? white_end(source_, at + 3) : 0;
    }

    Status take_raw(size_t tag, size_t begin) {
        line_starting_ = source_[begin - 1] == '\n';
        for (size_t end = source_.find("{%", begin); end != source_.npos; end = source_.find("{%", end + 2)) {
            const char control = end + 2 < source_.size() ? source_[end + 2] : '\0';
            size_t at = white_end(source_, end + (control == '-' || control == '+' ? 3 : 2));
            if (source_.compare(at, 6, "endraw") != 0) continue;
            at = white_end(source_, at + 6);
            const char closing = at < source_.size() ? source_[at] : '\0';
            if (closing == '-' || closing == '+') ++at;
            if (source_.compare(at, 2, "%}") != 0) continue;
            push(LexemeKind::data, begin,
                 source_.substr(begin, text_end(begin, end, control, false) - begin));
            at_ = at + 2;
            leave_tag(closing, true);
            return {};
        }
        return fault(tag, "the raw block has no end \"{% endraw %}\"");
    }

    Status take_tag(std::string_view closing) {
        const Position begin = out_.back().at;
        std::string brackets;
        while (true) {
            at_ = white_end(source_, at_);
            if (at_ >= source_.size()) return located(begin, error("the tag has no end \"{}\"", closing));
            if (brackets.empty()) {
                const char control = ahead("-") || ahead("+") ? source_[at_] : '\0';
                const bool signs = control == '-' || (control == '+' && closing == "%}");
                if (rest().substr(signs ? 1 : 0).starts_with(closing)) {
                    push(closing == "%}" ? LexemeKind::block_end : LexemeKind::output_end, at_);
                    at_ += signs ? 3 : 2;
                    leave_tag(control, closing == "%}");
                    return {};
                }
            }
            RL_TRY(take_token(brackets));
        }
    }

    Status take_token(std::string& brackets) {
        const char c = source_[at_];
        if (c == '"' || c == '\'') return take_text(c);
        if (is_digit(c)) return take_number();
        if (starts_name(c)) {
            const size_t begin = at_;
            while (at_ < source_.size() && (starts_name(source_[at_]) || is_digit(source_[at_]))) {
                if (source_[at_] & 0x80) {
                    const Utf8Step step = utf8_step(source_, at_);
                    if (is_white_space(step.code)) break;
                    at_ += step.bytes;
                } else {
                    ++at_;
                }
            }
            push(LexemeKind::name, begin, source_.substr(begin, at_ - begin));
            return {};
        }
        static constexpr std::string_view kSigns[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                                      "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                      ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};
        for (const std::string_view sign : kSigns) {
            if (!ahead(sign)) continue;
            RL_TRY(balance(sign[0], brackets));
            push(LexemeKind::sign, at_, std::string(sign));
            at_ += sign.size();
            return {};
        }
        return fault(at_, fmt::format("\"{}\" has no meaning in a tag",
                                      printable(rest().substr(0, utf8_step(source_, at_).bytes))));
    }

    Status balance(char c, std::string& brackets) {
        if (c == '(' || c == '[' || c == '{') brackets += c == '(' ? ')' : char(c + 2);
        if (c != ')' && c != ']' && c != '}') return {};
        if (brackets.empty()) return fault(at_, fmt::format("\"{}\" closes nothing", c));
        if (brackets.back() != c)
            return fault(at_, fmt::format("\"{}\" stands where \"{}\" is expected", c, brackets.back()));
        brackets.pop_back();
        return {};
    }

    Status take_number() {
        const size_t begin = at_;
        std::string digits;
        int base = 10;
        if (source_[at_] == '0' && at_ + 1 < source_.size()) {
            const char kind = char(source_[at_ + 1] | 0x20);
            base = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 10;
        }
        if (base != 10) at_ += 2;
        const bool element = out_.back().kind == LexemeKind::sign && out_.back().text == ".";  // "x.0.1"
        bool real = false;
        for (; at_ < source_.size(); ++at_) {
            const char c = source_[at_];
            const char next = at_ + 1 < source_.size() ? source_[at_ + 1] : '\0';
            const bool hex = base == 16 && ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
            if (c == '_' && is_digit(next)) continue;
            const bool point = base == 10 && !element && c == '.' && !real && is_digit(next);
            const bool power = base == 10 && (c == 'e' || c == 'E') && digits.find('e') == digits.npos &&
                               (is_digit(next) || ((next == '+' || next == '-') && at_ + 2 < source_.size() &&
                                                   is_digit(source_[at_ + 2])));
            if (!is_digit(c) && !hex && !point && !power) break;
            digits += power ? 'e' : c;
            real |= point || power;
            if (power && !is_digit(next)) digits += source_[++at_];
        }
        Lexeme& number = push(real ? LexemeKind::real : LexemeKind::integer, begin);
        const char* last = digits.data() + digits.size();
        const auto read = real ? std::from_chars(digits.data(), last, number.real)
                               : std::from_chars(digits.data(), last, number.integer, base);
        if (read.ec != std::errc() || read.ptr != last)
            return fault(begin, fmt::format("\"{}\" is no number of 64 bits",
                                            printable(source_.substr(begin, at_ - begin))));
        return {};
    }

    Status take_text(char quote) {
        const size_t begin = at_++;
        std::string text;
        while (at_ < source_.size() && source_[at_] != quote) {
            if (source_[at_] != '\\') {
                text += source_[at_++];
                continue;
            }
            if (at_ + 1 >= source_.size()) break;
            take_escape(text);
        }
        if (at_ >= source_.size()) return fault(begin, "the text in quotes has no end");
        ++at_;
        push(LexemeKind::text, begin, std::move(text));
        return {};
    }

    // Escapes as in Python; an unknown one stands for itself.
    void take_escape(std::string& text) {
        const char c = source_[at_ + 1];
        at_ += 2;
        static constexpr std::string_view kNames = "ntrabfv\\'\"";
        static constexpr std::string_view kValues = "\n\t\r\a\b\f\v\\'\"";
        if (const size_t known = kNames.find(c); known != kNames.npos) {
            text += kValues[known];
            return;
        }
        if (c == '\n') return;
        const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
        uint32_t code = 0;
        const char* first = source_.data() + at_;
        const char* last = source_.data() + source_.size();
        if (digits && at_ + digits <= source_.size()) {
            const auto read = std::from_chars(first, first + digits, code, 16);
            if (read.ptr == first + digits) return add_code(text, code, digits);
        } else if (c >= '0' && c <= '7') {
            --first;
            const auto read = std::from_chars(first, std::min(first + 3, last), code, 8);
            return add_code(text, code, size_t(read.ptr - first) - 1);
        }
        text += '\\';
        --at_;
        const size_t bytes = utf8_step(source_, at_).bytes;
        text.append(source_, at_, bytes);
        at_ += bytes;
    }

    void add_code(std::string& text, uint32_t code, size_t used) {
        const bool valid = code < 0x110000 && (code < 0xD800 || code > 0xDFFF);
        append_utf8(text, valid ? char32_t(code) : U'\uFFFD');
        at_ += used;
    }

    std::string source_;
    size_t at_ = 0;
    bool line_starting_ = true;
    size_t counted_ = 0;  // bytes that here_ has counted
    Position here_;
    std::vector<Lexeme> out_;
};

}  // namespace

Error located(Position at, const Error& error) {
    return Error{fmt::format("line {}, column {}: {}", at.line, at.column, error.message)};
}

Result<std::vector<Lexeme>> cut_template(std::string_view source) {
    return Lexer(unified(source)).run();
}

}  // namespace redline::jinja
