#include "grammar/json_rules.h"

#include <algorithm>
#include <limits>

namespace redline {
namespace {

struct Known {
    std::string_view name;
    std::string_view text;
};

// A $ marks the name of another rule. Strings contain no half of a surrogate pair; numbers fit a double.
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
};

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

std::string JsonRules::add(const std::string& hint, const std::string& text) {
    const auto [found, added] = names_.try_emplace(text);
    if (added) {
        found->second = reserve(hint);
        define(found->second, text);
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

void JsonRules::define(const std::string& name, const std::string& text) {
    rules_[name] = text;
    bytes_ += text.size();
}

bool JsonRules::reserve_exact(const std::string& name) {
    return rules_.try_emplace(name).second;
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
