#include "grammar/json_rules.h"

#include <algorithm>
#include <limits>

namespace redline {
namespace {

struct Known {
    std::string_view name;
    std::string_view text;
};

// Rules name others with a $ before. A string holds no half of a surrogate pair, a number fits a double.
constexpr Known kKnown[] = {
    {"ws", R"gbnf(| " " | "\n"{1,2} [ \t]{0,20})gbnf"},
    {"hex", "[0-9a-fA-F]"},
    {"escape",
     R"gbnf("\\" (["\\bfnrt] | "u" ([0-9abcefABCEF] $hex{3} | [dD] [0-7] $hex{2} | [dD] [89abAB] $hex{2} "\\u" [dD] [c-fC-F] $hex{2})))gbnf"},
    {"char", R"gbnf([^"\\\x7F\x00-\x1F] | $escape)gbnf"},
    {"string", R"gbnf("\"" $char* "\"")gbnf"},
    {"integer", R"gbnf("-"? ("0" | [1-9] [0-9]{0,15}))gbnf"},
    {"number", R"gbnf($integer ("." [0-9]{1,16})? ([eE] [-+]? [0-9]{1,2})?)gbnf"},
    {"boolean", R"gbnf("true" | "false")gbnf"},
    {"null", R"gbnf("null")gbnf"},
    {"value", "$object | $array | $string | $number | $boolean | $null"},
    {"object",
     R"gbnf("{" $ws ($string $ws ":" $ws $value ($ws "," $ws $string $ws ":" $ws $value)* $ws)? "}")gbnf"},
    {"array", R"gbnf("[" $ws ($value ($ws "," $ws $value)* $ws)? "]")gbnf"},
    {"date",
     R"gbnf([0-9]{4} "-" (("0" [13578] | "1" [02]) "-" ("0" [1-9] | [12] [0-9] | "3" [01]) | ("0" [469] | "11") "-" ("0" [1-9] | [12] [0-9] | "30") | "02-" ("0" [1-9] | "1" [0-9] | "2" [0-8])))gbnf"},
    {"time",
     R"gbnf(([01] [0-9] | "2" [0-3]) ":" [0-5] [0-9] ":" [0-5] [0-9] ("." [0-9]{3})? ("Z" | [-+] ([01] [0-9] | "2" [0-3]) ":" [0-5] [0-9]))gbnf"},
    {"date-time", R"gbnf($date "T" $time)gbnf"},
    {"uuid", R"gbnf($hex{8} "-" $hex{4} "-" $hex{4} "-" $hex{4} "-" $hex{12})gbnf"},
};

// Numbers of `digits` digits from low to high, of the same length.
std::string digits_range(const std::string& low, const std::string& high) {
    if (low.empty()) return "";
    if (low == high) return gbnf_quoted(low);
    const auto rest = [](const std::string& text) { return text.substr(1); };
    const size_t below = low.size() - 1;
    const std::string zeros(below, '0'), nines(below, '9');
    if (low[0] == high[0])
        return gbnf_quoted(low.substr(0, 1)) + " (" + digits_range(rest(low), rest(high)) + ")";
    std::string out;
    const auto add = [&](const std::string& part) { out += (out.empty() ? "" : " | ") + part; };
    char first = low[0], last = high[0];
    const auto edge = [&](char digit, const std::string& from, const std::string& to) {
        add(gbnf_quoted(std::string(1, digit)) + " (" + digits_range(from, to) + ")");
    };
    if (rest(low) != zeros) edge(first++, rest(low), nines);
    const bool partial = rest(high) != nines;
    if (partial) --last;
    if (first <= last)
        add(fmt::format("[{}-{}]", first, last) + (below > 0 ? fmt::format(" [0-9]{{{}}}", below) : ""));
    if (partial) edge(char(last + 1), zeros, rest(high));
    return out;
}

constexpr size_t kMostDigits = 16;

// From low >= 0 on; without `high` up to 16 digits, or as many as low has.
std::string natural_range(uint64_t low, std::optional<uint64_t> high) {
    const size_t most =
        high ? fmt::to_string(*high).size() : std::max(kMostDigits, fmt::to_string(low).size());
    std::string out;
    for (size_t digits = fmt::to_string(low).size(); digits <= most; ++digits) {
        std::string from = "1" + std::string(digits - 1, '0'), to = std::string(digits, '9');
        if (digits == 1) from = "0";
        if (fmt::to_string(low).size() == digits) from = fmt::to_string(low);
        if (high && fmt::to_string(*high).size() == digits) to = fmt::to_string(*high);
        out += (out.empty() ? "" : " | ") + digits_range(from, to);
    }
    return out;
}

uint64_t magnitude(int64_t value) {
    return value < 0 ? uint64_t(0) - uint64_t(value) : uint64_t(value);
}

}  // namespace

std::string gbnf_quoted(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\')
            out += fmt::format("\\{}", c);
        else if (uint8_t(c) < 0x20 || c == 0x7F)
            out += fmt::format("\\x{:02X}", uint8_t(c));
        else
            out += c;
    }
    return out + "\"";
}

std::string repeated(const std::string& item, uint64_t least, std::optional<uint64_t> most) {
    if (!most && least == 0) return item + "*";
    if (!most) return fmt::format("{}{{{},}}", item, least);
    return fmt::format("{}{{{},{}}}", item, least, *most);
}

std::string integer_range(std::optional<int64_t> low, std::optional<int64_t> high) {
    std::string out;
    if (!low || *low < 0) {
        // -x for x from 1 on, or from -high on, to -low.
        const uint64_t nearest = high && *high < 0 ? magnitude(*high) : 1;
        const std::optional<uint64_t> farthest = low ? std::optional(magnitude(*low)) : std::nullopt;
        out = "\"-\" (" + natural_range(nearest, farthest) + ")";
    }
    if (high && *high < 0) return out;
    const uint64_t from = low && *low > 0 ? uint64_t(*low) : 0;
    const std::optional<uint64_t> to = high ? std::optional(uint64_t(*high)) : std::nullopt;
    return out + (out.empty() ? "" : " | ") + natural_range(from, to);
}

std::string JsonRules::add(const std::string& hint, const std::string& text) {
    const auto [found, added] = names_.try_emplace(text);
    if (added) {
        found->second = reserve(hint);
        define(found->second, text);
        bytes_ += text.size();
    }
    return found->second;
}

std::string JsonRules::reserve(const std::string& hint) {
    std::string base;
    for (const char c : hint.substr(0, 40)) {
        const bool fits = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (fits || (!base.empty() && base.back() != '-')) base += fits ? c : '-';
    }
    if (base.empty()) base = "rule";
    std::string name = base;
    for (size_t i = rules_.size(); rules_.count(name) > 0; ++i) name = fmt::format("{}-{}", base, i);
    rules_[name];
    return name;
}

std::string JsonRules::use(std::string_view name) {
    const std::string rule = fmt::format("json-{}", name);
    if (rules_.count(rule) > 0) return rule;
    const auto known = std::find_if(std::begin(kKnown), std::end(kKnown),
                                    [name](const Known& each) { return each.name == name; });
    RL_CHECK(known != std::end(kKnown), "no rule of JSON is called {}", name);
    rules_[rule];
    std::string text;
    for (size_t i = 0; i < known->text.size(); ++i) {
        if (known->text[i] != '$') {
            text += known->text[i];
            continue;
        }
        size_t end = i + 1;
        while (end < known->text.size() && known->text[end] >= 'a' && known->text[end] <= 'z') ++end;
        text += use(known->text.substr(i + 1, end - i - 1));
        i = end - 1;
    }
    define(rule, text);
    return rule;
}

std::string JsonRules::text() const {
    std::string out;
    for (const auto& [name, text] : rules_) out += name + " ::= " + text + "\n";
    return out;
}

std::string member_pointer(const std::string& path, std::string_view name) {
    std::string out = path + "/";
    for (const char c : name) out += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
    return out;
}

}  // namespace redline
