// Parser of GBNF, llama.cpp's notation for grammars.
#include "grammar/grammar_builder.h"
#include "text/tokens/unicode.h"

#include <algorithm>
#include <charconv>

namespace redline {
namespace {

constexpr size_t kMostNesting = 200;
constexpr uint32_t kMostRepeats = 1'000'000;

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '-';
}

class Parser {
public:
    explicit Parser(std::string_view text) : text_(text) {}

    Result<Grammar> run() {
        skip(true);
        while (!done()) {
            RL_TRY(rule());
            skip(true);
        }
        return builder_.finish();
    }

private:
    using Place = GrammarBuilder::Place;
    using Sequence = GrammarBuilder::Sequence;
    using Alternatives = GrammarBuilder::Alternatives;

    bool done() const { return at_ >= text_.size(); }
    char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
    bool starts(std::string_view what) const { return text_.substr(at_).starts_with(what); }
    bool take(char wanted) {
        if (done() || text_[at_] != wanted) return false;
        at_ += 1;
        return true;
    }

    // Line and column of a byte. Rules are visited in order and counted on from the one before, so that all
    // of them together take one pass over the text. Errors may go back.
    Place place(size_t at) {
        if (at < counted_) counted_ = 0, counted_place_ = {};
        for (; counted_ < at; ++counted_) {
            const char c = text_[counted_];
            if (c == '\n')
                counted_place_ = {counted_place_.line + 1, 1};
            else if ((uint8_t(c) & 0xC0) != 0x80)
                counted_place_.column += 1;
        }
        return counted_place_;
    }
    Place here() { return place(at_); }

    Error expected(std::string_view what) {
        std::string found = "the end of the grammar";
        if (!done()) {
            const Utf8Step step = utf8_step(text_, at_);
            found = step.kind != Utf8Step::Kind::character ? "bytes that are no UTF-8"
                    : peek() == '\n'                       ? "the end of the line"
                                     : fmt::format("'{}'", printable(text_.substr(at_, step.bytes)));
        }
        return error("{}: expected {}, found {}", here().text(), what, found);
    }

    void skip(bool line_ends) {
        for (; !done(); ++at_) {
            const char c = peek();
            if (c == '#') {
                at_ = std::min(text_.find_first_of("\r\n", at_), text_.size());
                if (done() || !line_ends) return;
            } else if (c != ' ' && c != '\t' && !(line_ends && (c == '\r' || c == '\n'))) {
                return;
            }
        }
    }

    std::string name() {
        const size_t start = at_;
        while (is_name(peek())) ++at_;
        return std::string(text_.substr(start, at_ - start));
    }

    Status rule() {
        const Place start = here();
        const std::string name = this->name();
        if (name.empty()) return expected("the name of a rule (letters, digits and -)");
        skip(false);
        if (!starts("::=")) return expected("::= after the name of a rule");
        at_ += 3;
        skip(true);
        owner_ = builder_.rule(name, start);
        Alternatives read = RL_TRY(alternatives(0));
        RL_TRY(builder_.define(owner_, std::move(read), start));
        if (!done() && peek() != '\n' && peek() != '\r')
            return expected("a literal, a class, a rule, (, |, a repetition or the end of the line");
        return {};
    }

    Result<Alternatives> alternatives(size_t depth) {
        if (depth > kMostNesting)
            return error("{}: groups are nested more than {} deep", here().text(), kMostNesting);
        Alternatives out;
        do {
            if (!out.empty()) skip(true);
            out.push_back(RL_TRY(sequence(depth)));
        } while (take('|'));
        return out;
    }

    Result<Sequence> sequence(size_t depth) {
        Sequence out;
        size_t last = 0;  // start of the item that a repetition applies to
        bool repeatable = false;
        for (;;) {
            const size_t before = out.size();
            const char c = peek();
            if (c == '*' || c == '+' || c == '?' || c == '{') {
                if (!repeatable) return expected("something to repeat before a repetition");
                RL_TRY(repetition(out, last));
                skip(depth > 0);
                continue;
            }
            if (c == '@') {
                out.push_back(RL_TRY(counted()));
                repeatable = false;
                skip(depth > 0);
                continue;
            }
            if (c == '"') {
                RL_TRY(literal(out));
            } else if (c == '[') {
                out.push_back(builder_.characters(RL_TRY(character_class())));
            } else if (c == '.') {
                at_ += 1;
                out.push_back(builder_.characters(CharacterSet({}, true)));
            } else if (c == '<' || (c == '!' && peek(1) == '<')) {
                out.push_back(RL_TRY(token()));
            } else if (c == '(') {
                out.push_back(RL_TRY(group(depth)));
            } else if (is_name(c)) {
                const Place used = here();
                out.push_back({Symbol::Kind::rule, builder_.rule(name(), used)});
            } else {
                RL_TRY(builder_.check_size());
                return out;
            }
            last = before;
            repeatable = true;
            skip(depth > 0);
        }
    }

    // An extension of llama.cpp's notation, for schemas: @rule{2,5} passes through a rule in 2 to 5 steps,
    // each of which is an item followed by an @rule.
    Result<Symbol> counted() {
        at_ += 1;
        const Place used = here();
        const std::string called = name();
        if (called.empty()) return expected("the name of a rule behind @");
        const uint32_t rule = builder_.rule(called, used);
        if (!take('{')) return GrammarBuilder::step(rule);
        const uint32_t least = RL_TRY(number("the number of steps", kMostRepeats));
        uint32_t most = Grammar::kUnbounded;
        if (!take(',')) return expected(", after the least number of steps");
        if (is_digit(peek())) most = RL_TRY(number("the number of steps", kMostRepeats));
        if (!take('}')) return expected("} at the end of a count, as in {2,} or {2,5}");
        return builder_.counted(rule, least, most);
    }

    Result<Symbol> group(size_t depth) {
        at_ += 1;
        skip(true);
        Alternatives inner = RL_TRY(alternatives(depth + 1));
        if (!take(')')) return expected("a literal, a class, a rule, |, a repetition or )");
        return Symbol{Symbol::Kind::rule, builder_.anonymous_rule(owner_, std::move(inner))};
    }

    Status literal(Sequence& out) {
        const size_t start = at_++;
        while (!take('"')) {
            if (done() || peek() == '\n')
                return error("{}: the literal is not closed with \" on its line", place(start).text());
            const char32_t code = RL_TRY(character());
            out.push_back(builder_.characters(CharacterSet({{code, code}})));
        }
        return {};
    }

    Result<CharacterSet> character_class() {
        const size_t start = at_++;
        const bool negated = take('^');
        std::vector<CodeRange> ranges;
        while (!take(']')) {
            if (done() || peek() == '\n') return error("{}: the class has no closing ]", place(start).text());
            const char32_t first = RL_TRY(character());
            char32_t last = first;
            if (peek() == '-' && peek(1) != ']') {
                at_ += 1;
                if (done() || peek() == '\n') continue;  // reported above
                const size_t end_at = at_;
                last = RL_TRY(character());
                if (last < first) return error("{}: the range ends before it begins", place(end_at).text());
            }
            ranges.push_back({first, last});
        }
        CharacterSet set(std::move(ranges), negated);
        if (set.empty()) return error("{}: no character is in this class", place(start).text());
        return set;
    }

    Result<char32_t> character() {
        if (peek() != '\\') {
            const Utf8Step step = utf8_step(text_, at_);
            if (step.kind != Utf8Step::Kind::character) return expected("a character");
            at_ += step.bytes;
            return step.code;
        }
        constexpr std::string_view kLetters = "nrt\"\\[]";
        constexpr std::string_view kMeanings = "\n\r\t\"\\[]";
        const size_t start = at_++;
        const size_t known = done() ? kLetters.npos : kLetters.find(peek());
        if (known != kLetters.npos) {
            at_ += 1;
            return char32_t(kMeanings[known]);
        }
        const size_t digits = peek() == 'x' ? 2 : peek() == 'u' ? 4 : peek() == 'U' ? 8 : 0;
        if (digits == 0) return expected("n, r, t, \", \\, [, ], x, u or U after a backslash");
        at_ += 1;
        uint32_t code = 0;
        const std::string_view hex = text_.substr(at_, digits);
        const auto read = std::from_chars(hex.data(), hex.data() + hex.size(), code, 16);
        at_ += size_t(read.ptr - hex.data());
        if (read.ptr != hex.data() + digits || hex.size() != digits)
            return expected(fmt::format("{} hexadecimal digits", digits));
        if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
            return error("{}: U+{:04X} is no character", place(start).text(), code);
        return char32_t(code);
    }

    // Parses <token> and <[id]>; with a ! before it means any other token.
    Result<Symbol> token() {
        const size_t start = at_;
        const bool others = take('!');
        const size_t text_at = at_++;
        Grammar::TokenName named;
        named.place = place(start).text();
        if (take('[')) {
            named.id = int32_t(RL_TRY(number("the id of a token", std::numeric_limits<int32_t>::max())));
            if (!take(']')) return expected("] after the id of a token");
            if (!take('>')) return expected("> after the id of a token");
            return builder_.token(std::move(named), others);
        }
        at_ = std::min(text_.find_first_of(">\r\n", at_), text_.size());
        if (!take('>')) return expected("> at the end of a token");
        named.text = text_.substr(text_at, at_ - text_at);
        if (named.text.size() < 3) return error("{}: <> names no token", place(start).text());
        return builder_.token(std::move(named), others);
    }

    Result<uint32_t> number(std::string_view what, uint32_t most) {
        const size_t start = at_;
        uint32_t value = 0;
        if (!is_digit(peek())) return expected(what);
        const auto read = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
        at_ = size_t(read.ptr - text_.data());
        if (read.ec != std::errc() || value > most)
            return error("{}: {} may be at most {}", place(start).text(), what, most);
        return value;
    }

    // Wraps the symbols from `first` on into a repetition.
    Status repetition(Sequence& out, size_t first) {
        const Place start = here();
        uint32_t least = 0;
        uint32_t most = Grammar::kUnbounded;
        const char kind = text_[at_++];
        if (kind == '+') least = 1;
        if (kind == '?') most = 1;
        if (kind == '{') {
            skip(false);
            constexpr std::string_view kCount = "the number of repetitions";
            if (peek() != ',') least = RL_TRY(number(kCount, kMostRepeats));
            skip(false);
            const bool range = take(',');
            skip(false);
            if (!range) most = least;
            if (range && is_digit(peek())) most = RL_TRY(number(kCount, kMostRepeats));
            skip(false);
            if (!take('}')) return expected("} at the end of a repetition, as in {2}, {2,} or {2,5}");
            if (most < least)
                return error("{}: at least {} repetitions, and at most {}", start.text(), least, most);
        }
        const auto begin = out.begin() + std::ptrdiff_t(first);
        // A single rule needs no wrapping.
        const uint32_t body = out.size() == first + 1 && begin->kind == Symbol::Kind::rule
                                  ? begin->index
                                  : builder_.anonymous_rule(owner_, {Sequence(begin, out.end())});
        out.resize(first);
        out.push_back(builder_.repeat(body, least, most, start));
        return builder_.check_size();
    }

    std::string_view text_;
    size_t at_ = 0;
    size_t counted_ = 0;
    Place counted_place_;  // the place of the byte at counted_
    uint32_t owner_ = 0;   // the rule being read
    GrammarBuilder builder_;
};

}  // namespace

Result<Grammar> Grammar::parse(std::string_view text) {
    return Parser(text).run();
}

}  // namespace redline
