#include "grammar/pattern.h"

#include "text/tokens/unicode.h"

#include <algorithm>
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

Pattern set_of(CharacterSet set) {
    Pattern out;
    out.kind = Pattern::Kind::set;
    out.set = std::move(set);
    return out;
}

Pattern of_kind(Pattern::Kind kind) {
    Pattern out;
    out.kind = kind;
    return out;
}

class PatternParser {
public:
    explicit PatternParser(std::string_view text) : text_(text) {}

    Result<Pattern> run() {
        Pattern out = RL_TRY(alternatives(0));
        if (at_ < text_.size()) return wrong("a ) without (");
        return out;
    }

private:
    bool done() const { return at_ >= text_.size(); }
    char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
    bool take(char wanted) {
        if (done() || text_[at_] != wanted) return false;
        at_ += 1;
        return true;
    }
    bool take(std::string_view wanted) {
        if (!text_.substr(at_).starts_with(wanted)) return false;
        at_ += wanted.size();
        return true;
    }
    Error wrong(std::string_view what) const {
        return error("{} at character {} is not supported", what, at_ + 1);
    }

    Result<Pattern> alternatives(size_t depth) {
        if (depth > kMostNesting) return wrong("a group this deep");
        Pattern out = of_kind(Pattern::Kind::either);
        do out.parts.push_back(RL_TRY(sequence(depth)));
        while (take('|'));
        if (out.parts.size() > 1) return out;
        Pattern only = std::move(out.parts[0]);
        return only;
    }

    Result<Pattern> sequence(size_t depth) {
        Pattern out = of_kind(Pattern::Kind::sequence);
        while (!done() && peek() != '|' && peek() != ')') {
            Pattern item = RL_TRY(atom(depth));
            out.parts.push_back(RL_TRY(repeated(std::move(item))));
        }
        return out;
    }

    Result<Pattern> atom(size_t depth) {
        const char c = peek();
        if (c == '(') return group(depth);
        if (c == '[') return character_class();
        if (take('^') || take("\\A")) return of_kind(Pattern::Kind::begin);
        if (take('$') || take("\\Z") || take("\\z")) return of_kind(Pattern::Kind::end);
        if (c == '*' || c == '+' || c == '?' || (c == '{' && counts()))
            return wrong("a repetition of nothing");
        if (take('.')) return set_of(CharacterSet(kLineEnds, true));
        return set_of(CharacterSet(RL_TRY(characters(false))));
    }

    Result<Pattern> group(size_t depth) {
        const size_t start = at_;
        const bool ahead = take("(?="), not_ahead = !ahead && take("(?!");
        if (ahead || not_ahead) {
            if (inside_ahead_) return wrong("a condition inside of another");
            inside_ahead_ = true;
        } else if (take("(?<") || take("(?P<")) {
            const size_t end = std::min(text_.find('>', at_), text_.size());
            if (peek() == '=' || peek() == '!') at_ = start;
            if (at_ == start || end == text_.size()) return wrong("this group");
            at_ = end + 1;
        } else if (!take("(?:")) {
            if (peek(1) == '?') return wrong("this group");
            at_ += 1;
        }
        Pattern inner = RL_TRY(alternatives(depth + 1));
        if (!take(')')) return wrong("a ( without )");
        if (!ahead && !not_ahead) return inner;
        inside_ahead_ = false;
        Pattern out = of_kind(Pattern::Kind::ahead);
        out.negated = not_ahead;
        out.parts.push_back(std::move(inner));
        return out;
    }

    Result<Pattern> character_class() {
        at_ += 1;
        const bool negated = take('^');
        std::vector<CodeRange> ranges;
        while (!take(']')) {
            if (done()) return wrong("a [ without ]");
            if (peek() == '[' && peek(1) == ':') return wrong("a named class");
            std::vector<CodeRange> next = RL_TRY(characters(true));
            const bool single = next.size() == 1 && next[0].first == next[0].last;
            if (single && peek() == '-' && peek(1) != ']' && peek(1) != '\0') {
                at_ += 1;
                const std::vector<CodeRange> last = RL_TRY(characters(true));
                if (last.size() != 1 || last[0].first != last[0].last || last[0].last < next[0].first)
                    return wrong("a range that does not go from a character to a later one");
                next[0].last = last[0].last;
            }
            ranges.insert(ranges.end(), next.begin(), next.end());
        }
        const CharacterSet set(std::move(ranges), negated);
        if (set.empty()) return wrong("a class without characters");
        return set_of(set);
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
        const auto known = [&](std::vector<CodeRange> ranges) {
            at_ += 2;
            return Result<std::vector<CodeRange>>(std::move(ranges));
        };
        const auto inverse = [](const std::vector<CodeRange>& of) { return CharacterSet(of, true).ranges(); };
        if (kind == 'd' || kind == 'D') return known(kind == 'd' ? kDigits : inverse(kDigits));
        if (kind == 'w' || kind == 'W') return known(kind == 'w' ? kWord : inverse(kWord));
        if (kind == 's' || kind == 'S') return known(kind == 's' ? kSpace : inverse(kSpace));
        if (kind == 'x') return hexadecimal(2);
        if (kind == 'u') return hexadecimal(4);
        constexpr std::string_view kLetters = "nrtfv";
        constexpr std::string_view kMeanings = "\n\r\t\f\v";
        constexpr std::string_view kLiteral = "^$\\.*+?()[]{}|/-\"'#@&%!,:;<=>~` _";
        const size_t letter = kind != '\0' ? kLetters.find(kind) : kLetters.npos;
        char32_t code = char32_t(kind);
        if (letter != kLetters.npos)
            code = char32_t(kMeanings[letter]);
        else if (in_class && kind == 'b')
            code = '\b';
        else if (kind == '0' && (peek(2) < '0' || peek(2) > '9'))
            code = 0;
        else if (kind == '\0' || kLiteral.find(kind) == kLiteral.npos)
            return wrong(in_class ? "this escape in a class" : "this escape");
        return known({{code, code}});
    }

    // \x41, \u0041, \u{1F600}, and two halves of a surrogate pair.
    Result<std::vector<CodeRange>> hexadecimal(size_t digits) {
        const size_t start = at_;
        const auto read = [&](size_t from, size_t count) -> std::optional<uint32_t> {
            uint32_t code = 0;
            const std::string_view hex = text_.substr(std::min(from, text_.size()), count);
            const auto end = std::from_chars(hex.data(), hex.data() + hex.size(), code, 16);
            if (hex.empty() || hex.size() != count || end.ptr != hex.data() + count) return {};
            at_ = from + count;
            return code;
        };
        std::optional<uint32_t> code;
        if (digits == 4 && peek(2) == '{') {
            const size_t close = text_.find('}', at_);
            if (close != text_.npos && close - at_ <= 9) code = read(at_ + 3, close - at_ - 3);
            at_ += code ? 1 : 0;
        } else {
            code = read(at_ + 2, digits);
            if (code && *code >= 0xD800 && *code < 0xDC00 && peek() == '\\' && peek(1) == 'u')
                if (const auto low = read(at_ + 2, 4); low && *low >= 0xDC00 && *low < 0xE000)
                    code = 0x10000 + ((*code - 0xD800) << 10) + (*low - 0xDC00);
        }
        if (!code || *code > 0x10FFFF || (*code >= 0xD800 && *code < 0xE000)) {
            at_ = start;
            return wrong("this escape");
        }
        return std::vector<CodeRange>{{*code, *code}};
    }

    struct Counts {
        uint32_t least = 0;
        uint32_t most = Pattern::kUnbounded;
        size_t end = 0;
    };
    // {2}, {2,} or {2,5}; anything else behind a { is text.
    std::optional<Counts> counts() const {
        Counts out;
        const char* at = text_.data() + at_ + 1;
        const char* const end = text_.data() + text_.size();
        auto read = std::from_chars(at, end, out.least);
        if (read.ec == std::errc::invalid_argument || read.ptr == end) return {};
        if (read.ec != std::errc()) out.least = kMostRepeats + 1;
        out.most = out.least;
        if (*read.ptr == ',') {
            out.most = Pattern::kUnbounded;
            at = read.ptr + 1;
            read = std::from_chars(at, end, out.most);
            if (read.ec == std::errc::result_out_of_range) out.most = Pattern::kUnbounded - 1;
        }
        if (read.ptr == end || *read.ptr != '}') return {};
        out.end = size_t(read.ptr + 1 - text_.data());
        return out;
    }

    Result<Pattern> repeated(Pattern item) {
        std::optional<Counts> found;
        if (peek() == '*') found = Counts{0, Pattern::kUnbounded, at_ + 1};
        if (peek() == '+') found = Counts{1, Pattern::kUnbounded, at_ + 1};
        if (peek() == '?') found = Counts{0, 1, at_ + 1};
        if (peek() == '{') found = counts();
        if (!found) return item;
        const bool anchor = item.kind == Pattern::Kind::begin || item.kind == Pattern::Kind::end ||
                            item.kind == Pattern::Kind::ahead;
        const bool too_many =
            found->least > kMostRepeats || (found->most != Pattern::kUnbounded && found->most > kMostRepeats);
        if (anchor || too_many || found->least > found->most) return wrong("this repetition");
        at_ = found->end;
        // Lazy repetitions match the same texts.
        if (!take('?') && (peek() == '*' || peek() == '+' || (peek() == '{' && counts())))
            return wrong("a repetition of a repetition");
        return repeat_of(std::move(item), found->least, found->most);
    }

    std::string_view text_;
    size_t at_ = 0;
    bool inside_ahead_ = false;
};

}  // namespace

Result<Pattern> parse_pattern(std::string_view text) {
    return PatternParser(text).run();
}

Pattern text_pattern(std::string_view text) {
    std::vector<Pattern> parts;
    for (size_t i = 0; i < text.size();) {
        const Utf8Step step = utf8_step(text, i);
        parts.push_back(set_of(CharacterSet({{step.code, step.code}})));
        i += step.bytes;
    }
    return sequence_of(std::move(parts));
}

Pattern sequence_of(std::vector<Pattern> parts) {
    Pattern out;
    out.parts = std::move(parts);
    return out;
}

Pattern repeat_of(Pattern part, uint32_t least, uint32_t most) {
    Pattern out = of_kind(Pattern::Kind::repeat);
    out.least = least;
    out.most = most;
    out.parts.push_back(std::move(part));
    return out;
}

PatternLengths pattern_lengths(const Pattern& pattern) {
    PatternLengths out;
    if (pattern.kind == Pattern::Kind::set) return {1, 1};
    if (pattern.kind == Pattern::Kind::sequence) {
        for (const Pattern& part : pattern.parts) {
            const PatternLengths more = pattern_lengths(part);
            out.least += more.least;
            out.most = std::min<uint64_t>(out.most + more.most, Pattern::kUnbounded);
        }
    } else if (pattern.kind == Pattern::Kind::either) {
        out.least = Pattern::kUnbounded;
        for (const Pattern& part : pattern.parts) {
            const PatternLengths one = pattern_lengths(part);
            out.least = std::min(out.least, one.least);
            out.most = std::max(out.most, one.most);
        }
    } else if (pattern.kind == Pattern::Kind::repeat) {
        const PatternLengths one = pattern_lengths(pattern.parts[0]);
        out.least = std::min<uint64_t>(one.least * pattern.least, Pattern::kUnbounded);
        out.most = std::min<uint64_t>(one.most * pattern.most, Pattern::kUnbounded);
    }
    return out;
}

}  // namespace redline
