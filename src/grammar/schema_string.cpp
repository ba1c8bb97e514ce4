// Strings: combines patterns, formats and lengths.
#include "grammar/schema_converter.h"
#include "grammar/schema_formats.h"
#include "grammar/step_counts.h"
#include "grammar/string_rules.h"
#include "text/tokens/unicode.h"

#include <algorithm>

namespace redline {
namespace {

Json as_list(const Json& value) {
    return value.is_array() ? value : Json::array({value});
}

std::string quoted(const std::string& rule) {
    return "\"\\\"\" " + rule + " \"\\\"\"";
}

}  // namespace

SchemaConverter::Text SchemaConverter::string(const Json& schema, const std::string& path) {
    Json said = Json::object();
    for (const char* key : {"minLength", "maxLength", "pattern", "format", kNotTexts, kNotPatterns})
        if (schema.contains(key)) said[key] = schema[key];
    const std::string all = said.dump();
    if (const auto known = strings_.find(all); known != strings_.end()) return known->second;
    Limits length = RL_TRY(limits(schema, "minLength", "maxLength", path));
    const Json none = Json::array();
    for (const Json& each : as_list(schema.value("format", none)))
        if (const auto most = each.is_string() ? format_most(each.get<std::string>()) : std::nullopt)
            length.most = std::min(length.most.value_or(*most), *most);
    const size_t notes = noted_.size();
    std::vector<Asked> conditions = RL_TRY(asked(schema, path));
    const std::string rule = RL_TRY(string_of(std::move(conditions), length, path));
    // Rules with notes are not shared, since notes name the place.
    if (noted_.size() == notes) strings_.emplace(all, rule);
    return rule;
}

Result<std::vector<SchemaConverter::Asked>> SchemaConverter::asked(const Json& schema,
                                                                   const std::string& path) {
    std::vector<Asked> out;
    const Json none = Json::array();
    for (const Json& each : as_list(schema.value("pattern", none)))
        RL_TRY(ask_pattern(out, each, member_pointer(path, "pattern")));
    for (const Json& each : as_list(schema.value("format", none)))
        RL_TRY(ask_format(out, each, member_pointer(path, "format")));
    for (const Json& each : as_list(schema.value(kNotPatterns, none)))
        RL_TRY(ask_pattern(out, each, member_pointer(path, "not"), true));
    // All plain texts become one condition, since each condition multiplies the places to follow.
    Pattern begin, texts, end;
    begin.kind = Pattern::Kind::begin;
    texts.kind = Pattern::Kind::either;
    end.kind = Pattern::Kind::end;
    for (const Json& each : as_list(schema.value(kNotTexts, none)))
        if (each.is_string()) texts.parts.push_back(text_pattern(each.get<std::string>()));
    if (!texts.parts.empty())
        out.push_back({{sequence_of({begin, texts, end}), true}, member_pointer(path, "not")});
    return out;
}

Status SchemaConverter::ask_pattern(std::vector<Asked>& list, const Json& pattern, const std::string& pointer,
                                    bool negated) {
    if (!pattern.is_string()) return error("{}: takes a text", pointer);
    Result<Pattern> parsed = parse_pattern(pattern.get_ref<const std::string&>());
    if (!parsed) return not_held(pointer, parsed.error().message);
    list.push_back({{std::move(parsed).value(), negated}, pointer});
    return {};
}

Status SchemaConverter::ask_format(std::vector<Asked>& list, const Json& name, const std::string& pointer) {
    if (!name.is_string()) return error("{}: takes a text", pointer);
    const std::string& text = name.get_ref<const std::string&>();
    const std::optional<std::string> pattern = format_pattern(text);
    if (!pattern) return is_free_format(text) ? Status() : not_held(pointer, "the format is " + text);
    if (!format_rest(text).empty())
        RL_TRY(not_held(pointer, fmt::format("{} wholly: {}", text, format_rest(text))));
    list.push_back({{RL_TRY(parse_pattern(*pattern)), false}, pointer});
    return {};
}

// When the conditions are too complex together, the last ones are dropped, with a note: one by one, and after
// some tries, which take time, half of the rest. Empty: all were dropped.
Result<std::optional<Dfa>> SchemaConverter::common_strings(std::vector<Asked>& all) {
    constexpr size_t kMostTries = 4;
    for (size_t tries = 1; !all.empty(); ++tries) {
        std::vector<Condition> conditions;
        for (const Asked& each : all) conditions.push_back(each.condition);
        std::optional<Dfa> dfa = intersection(conditions);
        if (dfa) return dfa;
        if (all.size() == 1 && pattern_rule(all[0].condition.pattern) && !all[0].condition.negated) break;
        const size_t left = tries < kMostTries ? all.size() - 1 : all.size() / 2;
        for (; all.size() > left; all.pop_back())
            RL_TRY(not_held(all.back().pointer, "it takes too many states"));
    }
    return std::optional<Dfa>();
}

SchemaConverter::Text SchemaConverter::string_of(std::vector<Asked> all, Limits length,
                                                 const std::string& path) {
    // A single pattern takes fewer rules than its automaton.
    const auto plain = [&]() -> std::optional<std::string> {
        if (all.size() != 1 || all[0].condition.negated) return {};
        return pattern_rule(all[0].condition.pattern);
    };
    const auto loose = [&] {
        return length.most ||
               length.least > (all.empty() ? 0 : pattern_lengths(all[0].condition.pattern).least);
    };
    if (!all.empty() && (!plain() || loose())) {
        const std::optional<Dfa> dfa = RL_TRY(common_strings(all));
        if (dfa && (!plain() || loose())) return strings_of_dfa(*dfa, length, path);
    }
    if (const std::optional<std::string> rule = plain()) {
        if (length.least > pattern_lengths(all[0].condition.pattern).least)
            RL_TRY(not_held(member_pointer(path, "minLength"), "with this pattern it takes too many states"));
        if (length.most)
            RL_TRY(not_held(member_pointer(path, "maxLength"), "with this pattern it takes too many states"));
        return rules_.add("pattern", quoted(*rule));
    }
    if (!length.given) return rules_.use("string");
    return rules_.add("string", quoted(repeated(rules_.use("char"), length.least, length.most)));
}

SchemaConverter::Text SchemaConverter::strings_of_dfa(const Dfa& dfa, Limits length,
                                                      const std::string& path) {
    constexpr uint32_t kFarthest = Grammar::kUnbounded;
    if (dfa.states.empty())
        return nothing("{}: no string fits all that pattern, format and not ask together", path);
    StepGraph graph;
    for (const Dfa::State& state : dfa.states) {
        graph.states.push_back({{}, state.ends});
        for (const Dfa::Edge& edge : state.edges) graph.states.back().next.push_back(edge.to);
    }
    if (length.least > 0 || length.most) {
        const std::optional<StepCounts> counts = StepCounts::create(graph, kFarthest);
        const auto least = uint32_t(length.least);
        const uint32_t most = length.most ? uint32_t(*length.most) : kFarthest;
        if (!counts) {
            for (const char* key : {"minLength", "maxLength"})
                if (key[1] == 'i' ? length.least > 0 : length.most.has_value())
                    RL_TRY(not_held(member_pointer(path, key), "with this pattern it takes too many states"));
            length = {};
        } else if (!counts->reaches(0, least, most)) {
            return nothing("{}: no string that fits the rest is between {} and {} characters long", path,
                           least, length.most ? fmt::to_string(most) : "any number of");
        } else {
            // Limits that every string satisfies anyway need no count.
            if (least == 0 || !counts->reaches(0, 0, least - 1)) length.least = 0;
            if (length.most && !counts->reaches(0, most + 1, kFarthest)) length.most.reset();
        }
    }
    return rules_.add("text-string", quoted(dfa_rule(rules_, dfa, length.least, length.most)));
}

}  // namespace redline
