#include "grammar/string_rules.h"

#include <algorithm>

namespace redline {
namespace {

// The escape of a character that JSON must escape in strings; empty for others.
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

// A pattern without anchors and lookaheads as a rule; empty where it has some.
std::optional<std::string> unanchored(const Pattern& pattern) {
    constexpr uint32_t kMostEmptyRepeats = 64;  // the grammar's limit
    std::string out;
    switch (pattern.kind) {
        case Pattern::Kind::set:
            return set_rule(pattern.set);
        case Pattern::Kind::sequence:
        case Pattern::Kind::either: {
            const std::string_view between = pattern.kind == Pattern::Kind::either ? " | " : " ";
            for (size_t i = 0; i < pattern.parts.size(); ++i) {
                const std::optional<std::string> part = unanchored(pattern.parts[i]);
                if (!part) return {};
                out += (i > 0 ? std::string(between) : "") + *part;
            }
            if (pattern.parts.empty()) return "\"\"";
            return pattern.parts.size() == 1 ? out : "(" + out + ")";
        }
        case Pattern::Kind::repeat: {
            const Pattern& part = pattern.parts[0];
            const std::optional<std::string> inner = unanchored(part);
            const bool may_be_empty = pattern_lengths(part).least == 0;
            const bool unbounded = pattern.most == Pattern::kUnbounded;
            if (!inner || (may_be_empty && !unbounded && pattern.most > kMostEmptyRepeats)) return {};
            const std::string item = part.kind == Pattern::Kind::repeat ? "(" + *inner + ")" : *inner;
            return repeated(item, pattern.least,
                            unbounded ? std::nullopt : std::optional<uint64_t>(pattern.most));
        }
        case Pattern::Kind::begin:
        case Pattern::Kind::end:
        case Pattern::Kind::ahead:
            return {};
    }
    return {};
}

}  // namespace

std::optional<std::string> pattern_rule(const Pattern& pattern) {
    if (pattern.kind == Pattern::Kind::either) {
        std::string out;
        for (const Pattern& part : pattern.parts) {
            const std::optional<std::string> one = pattern_rule(part);
            if (!one) return {};
            out += (out.empty() ? "" : " | ") + *one;
        }
        return "(" + out + ")";
    }
    const std::string any = set_rule(CharacterSet({}, true)) + "*";
    Pattern inner = pattern.kind == Pattern::Kind::sequence ? pattern : sequence_of({pattern});
    const bool begins = !inner.parts.empty() && inner.parts.front().kind == Pattern::Kind::begin;
    if (begins) inner.parts.erase(inner.parts.begin());
    const bool ends = !inner.parts.empty() && inner.parts.back().kind == Pattern::Kind::end;
    if (ends) inner.parts.pop_back();
    const std::optional<std::string> text = unanchored(inner);
    if (!text) return {};
    return (begins ? "" : any + " ") + *text + (ends ? "" : " " + any);
}

std::string dfa_rule(JsonRules& rules, const Dfa& dfa, uint64_t least, std::optional<uint64_t> most) {
    const bool counts = least > 0 || most;
    std::vector<std::string> names;
    for (size_t i = 0; i < dfa.states.size(); ++i) names.push_back(rules.reserve("text"));
    for (size_t i = 0; i < dfa.states.size(); ++i) {
        std::string text = dfa.states[i].ends ? "\"\"" : "";
        for (const Dfa::Edge& edge : dfa.states[i].edges)
            text += fmt::format("{}{} {}{}", text.empty() ? "" : " | ", set_rule(edge.set), counts ? "@" : "",
                                names[edge.to]);
        rules.define(names[i], text);
    }
    if (!counts) return names[0];
    return fmt::format("@{}{{{},{}}}", names[0], least, most ? fmt::to_string(*most) : "");
}

}  // namespace redline
