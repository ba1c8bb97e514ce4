// Regular expressions of JSON schemas as rules of GBNF. They match the characters of a string; in JSON some
// of these are written as escapes.
#include "grammar/character_set.h"
#include "grammar/json_rules.h"
#include "text/unicode.h"

#include <charconv>

namespace redline {
namespace {

constexpr size_t kMostNesting = 100;
constexpr uint32_t kMostRepeats = 100'000;

const std::vector<CodeRange> kDigits = {{'0', '9'}};
const std::vector<CodeRange> kWord = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
const std::vector<CodeRange> kSpace = {{'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680},
                                       {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F},
                                       {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
const std::vector<CodeRange> kLineEnds = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};

// A character of a string as JSON writes it, when it must be an escape; else empty.
std::string json_escape(char32_t code) {
    constexpr std::string_view kCodes = "\"\\\b\f\n\r\t";
    constexpr std::string_view kLetters = "\"\\bfnrt";
    const size_t short_form = code < 128 ? kCodes.find(char(code)) : kCodes.npos;
    if (short_form != kCodes.npos) return std::string("\\") + kLetters[short_form];
    return code < 0x20 || code == 0x7F ? fmt::format("\\u00{:02X}", uint32_t(code)) : "";
}

std::string set_rule(const CharacterSet& set) {
    std::vector<CodeRange> plain;
    std::string escaped;
    for (const CodeRange& range : set.ranges()) {
        char32_t first = range.first;
        for (char32_t code = range.first; code <= std::min<char32_t>(range.last, 0x7F); ++code) {
            const std::string escape = json_escape(code);
            if (escape.empty()) continue;
            escaped += (escaped.empty() ? "" : " | ") + gbnf_quoted(escape);
            if (first < code) plain.push_back({first, code - 1});
            first = code + 1;
        }
        if (first <= range.last) plain.push_back({first, range.last});
    }
    std::string inside;
    for (const CodeRange& range : plain)
        inside += fmt::format("\\U{:08X}-\\U{:08X}", uint32_t(range.first), uint32_t(range.last));
    if (escaped.empty()) return "[" + inside + "]";
    return plain.empty() ? "(" + escaped + ")" : "([" + inside + "] | " + escaped + ")";
}

class PatternParser {
public:
    explicit PatternParser(std::string_view text) : text_(text) {}

    Result<std::string> run() {
        const std::string any = set_rule(CharacterSet({}, true)) + "*";
        const bool from_start = take('^');
        const bool to_end = ends_with_anchor();
        if (to_end) text_.remove_suffix(1);
        // ^a|b$ anchors each alternative at one side only.
        if ((from_start || to_end) && has_top_alternatives())
            return error("^ and $ beside | are not supported; put the alternatives into a group: ^(a|b)$");
        std::string out = "(" + RL_TRY(alternatives(0)) + ")";
        if (at_ < text_.size()) return wrong("a ) without (");
        if (!from_start) out = any + " " + out;
        return to_end ? out : out + " " + any;
    }

private:
    bool done() const { return at_ >= text_.size(); }
    char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
    bool take(char wanted) {
        if (done() || text_[at_] != wanted) return false;
        at_ += 1;
        return true;
    }
    Error wrong(std::string_view what) const {
        return error("{} at character {} is not supported", what, at_ + 1);
    }

    bool ends_with_anchor() const {
        if (!text_.ends_with('$')) return false;
        size_t slashes = 0;
        while (slashes + 1 < text_.size() && text_[text_.size() - 2 - slashes] == '\\') ++slashes;
        return slashes % 2 == 0;
    }
    bool has_top_alternatives() const {
        size_t depth = 0;
        bool in_class = false;
        for (size_t i = at_; i < text_.size(); ++i) {
            const char c = text_[i];
            if (c == '\\')
                ++i;
            else if (in_class)
                in_class = c != ']';
            else if (c == '[')
                in_class = true;
            else if (c == '(')
                ++depth;
            else if (c == ')')
                depth -= depth > 0 ? 1 : 0;
            else if (c == '|' && depth == 0)
                return true;
        }
        return false;
    }

    Result<std::string> alternatives(size_t depth) {
        if (depth > kMostNesting) return wrong("a group this deep");
        std::string out;
        do {
            if (!out.empty()) out += " | ";
            const std::string next = RL_TRY(sequence(depth));
            out += next.empty() ? "\"\"" : next;
        } while (take('|'));
        return out;
    }

    Result<std::string> sequence(size_t depth) {
        std::string out;
        while (!done() && peek() != '|' && peek() != ')') {
            const std::string item = RL_TRY(atom(depth));
            out += (out.empty() ? "" : " ") + item + RL_TRY(repetition());
        }
        return out;
    }

    Result<std::string> atom(size_t depth) {
        const char c = peek();
        if (c == '(') return group(depth);
        if (c == '[') return character_class();
        if (c == '^' || c == '$') return wrong("an anchor inside of the pattern");
        if (c == '*' || c == '+' || c == '?' || c == '{') return wrong("a repetition of nothing");
        if (take('.')) return set_rule(CharacterSet(kLineEnds, true));
        return set_rule(CharacterSet(RL_TRY(characters(false))));
    }

    Result<std::string> group(size_t depth) {
        if (peek(1) == '?' && peek(2) != ':') return wrong("a group that begins with (? and is not (?:");
        at_ += peek(1) == '?' ? 3 : 1;
        const std::string inner = RL_TRY(alternatives(depth + 1));
        if (!take(')')) return wrong("a ( without )");
        return "(" + inner + ")";
    }

    Result<std::string> character_class() {
        at_ += 1;
        const bool negated = take('^');
        std::vector<CodeRange> ranges;
        while (!take(']')) {
            if (done()) return wrong("a [ without ]");
            std::vector<CodeRange> next = RL_TRY(characters(true));
            const bool single = next.size() == 1 && next[0].first == next[0].last;
            if (peek() == '-' && peek(1) != ']' && peek(1) != '\0') {
                at_ += 1;
                const std::vector<CodeRange> last = RL_TRY(characters(true));
                if (!single || last.size() != 1 || last[0].first != last[0].last ||
                    last[0].last < next[0].first)
                    return wrong("a range that does not go from a character to a later one");
                next[0].last = last[0].last;
            }
            ranges.insert(ranges.end(), next.begin(), next.end());
        }
        const CharacterSet set(std::move(ranges), negated);
        if (set.empty()) return wrong("a class without characters");
        return set_rule(set);
    }

    // A character, or an escape that may stand for several.
    Result<std::vector<CodeRange>> characters(bool in_class) {
        if (peek() != '\\') {
            const Utf8Step step = utf8_step(text_, at_);
            if (step.kind != Utf8Step::Kind::character) return wrong("a byte that is no UTF-8");
            at_ += step.bytes;
            return std::vector<CodeRange>{{step.code, step.code}};
        }
        const char kind = peek(1);
        const auto inverse = [](const std::vector<CodeRange>& of) { return CharacterSet(of, true).ranges(); };
        const auto known = [&](std::vector<CodeRange> ranges) {
            at_ += 2;
            return Result<std::vector<CodeRange>>(std::move(ranges));
        };
        const auto one = [&](char code) { return known({{char32_t(code), char32_t(code)}}); };
        switch (kind) {
            case 'd':
                return known(kDigits);
            case 'D':
                return known(inverse(kDigits));
            case 'w':
                return known(kWord);
            case 'W':
                return known(inverse(kWord));
            case 's':
                return known(kSpace);
            case 'S':
                return known(inverse(kSpace));
            case 'n':
                return one('\n');
            case 'r':
                return one('\r');
            case 't':
                return one('\t');
            case 'f':
                return one('\f');
            case 'v':
                return one('\v');
            case 'x':
                return hexadecimal(2);
            case 'u':
                return hexadecimal(4);
            default:
                break;
        }
        constexpr std::string_view kLiteral = "^$\\.*+?()[]{}|/-\"'#@&%!,:;<=>~` _";
        if (kind == '\0' || kLiteral.find(kind) == kLiteral.npos)
            return wrong(in_class ? "this escape in a class" : "this escape");
        return one(kind);
    }

    Result<std::vector<CodeRange>> hexadecimal(size_t digits) {
        uint32_t code = 0;
        const std::string_view hex = text_.substr(std::min(at_ + 2, text_.size()), digits);
        const auto read = std::from_chars(hex.data(), hex.data() + hex.size(), code, 16);
        if (hex.size() != digits || read.ptr != hex.data() + digits || (code >= 0xD800 && code < 0xE000))
            return wrong("this escape");
        at_ += 2 + digits;
        return std::vector<CodeRange>{{char32_t(code), char32_t(code)}};
    }

    Result<std::string> repetition() {
        std::string out;
        if (peek() == '*' || peek() == '+' || peek() == '?') {
            out = text_[at_++];
        } else if (peek() == '{') {
            const std::string_view rest = text_.substr(at_);
            uint32_t least = 0, most = 0;
            auto read = std::from_chars(rest.data() + 1, rest.data() + rest.size(), least);
            bool good = read.ec == std::errc() && read.ptr != rest.data() + rest.size();
            out = fmt::format("{{{}", least);
            most = least;
            if (good && *read.ptr == ',') {
                out += ",";
                ++read.ptr;
                if (read.ptr != rest.data() + rest.size() && *read.ptr != '}') {
                    read = std::from_chars(read.ptr, rest.data() + rest.size(), most);
                    good = read.ec == std::errc();
                    out += fmt::to_string(most);
                }
            }
            good = good && read.ptr != rest.data() + rest.size() && *read.ptr == '}' && least <= most;
            if (!good || most > kMostRepeats) return wrong("this repetition");
            out += "}";
            at_ += size_t(read.ptr + 1 - rest.data());
        }
        // Lazy or not, the same texts match.
        if (!out.empty() && take('?')) return out;
        if (!out.empty() && (peek() == '*' || peek() == '+' || peek() == '{'))
            return wrong("a repetition of a repetition");
        return out;
    }

    std::string_view text_;
    size_t at_ = 0;
};

}  // namespace

Result<std::string> pattern_rule(std::string_view pattern) {
    return PatternParser(pattern).run();
}

}  // namespace redline
