// Objects: properties in their order, then others by key or by the pattern of a key.
#include "grammar/schema_converter.h"
#include "grammar/schema_merge.h"
#include "text/tokens/unicode.h"

#include <algorithm>

namespace redline {
namespace {

constexpr size_t kMostKey = 500;
constexpr size_t kMostPatterns = 4;      // whose common keys are computed
constexpr uint64_t kMostCells = 20'000;  // properties times counts

bool lists(const Json& names, const std::string& name) {
    return names.is_array() && std::find(names.begin(), names.end(), Json(name)) != names.end();
}

std::u32string characters(const std::string& text) {
    std::u32string out;
    for (size_t i = 0; i < text.size();) {
        const Utf8Step step = utf8_step(text, i);
        out += step.code;
        i += step.bytes;
    }
    return out;
}

std::string quoted(const std::string& rule) {
    return "\"\\\"\" " + rule + " \"\\\"\"";
}

}  // namespace

// Expresses the schema of propertyNames in keywords for strings; other keywords are noted.
Result<Json> SchemaConverter::key_schema(const Json& schema, const std::string& path, size_t depth) {
    constexpr std::string_view kKept[] = {"type",    "const",  "enum",    "minLength", "maxLength",
                                          "pattern", "format", kNotTexts, kNotPatterns};
    Json names = RL_TRY(part(schema, path, depth + 1));
    if (names.empty() || allows_nothing(names)) return names;
    // Keys are strings, whatever the schema says.
    const std::vector<std::string> wanted = RL_TRY(types(names, path));
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), "string") == wanted.end())
        return nothing_schema("no type is left that the schema allows");
    names["type"] = "string";
    if (names.contains("not")) names = RL_TRY(without_not(names, path, depth));
    if (allows_nothing(names)) return names;
    const Json held = held_keywords(names);
    for (const auto& [key, value] : held.items()) {
        if (std::find(std::begin(kKept), std::end(kKept), key) != std::end(kKept)) continue;
        if (key == "anyOf" || key == "oneOf")
            RL_TRY(not_held(member_pointer(path, key), "it is not supported for keys"));
        names.erase(key);
    }
    return names;
}

// When propertyNames lists all keys, they become ordinary properties.
Result<Json> SchemaConverter::with_named_keys(Json schema, const std::string& path, size_t depth) {
    if (!schema.contains("propertyNames")) return schema;
    const std::string at = member_pointer(path, "propertyNames");
    const Json names = RL_TRY(key_schema(schema["propertyNames"], at, depth));
    schema.erase("propertyNames");
    if (names.empty()) return schema;
    const bool none = allows_nothing(names);
    if (!none && !names.contains("const") && !names.contains("enum")) {
        schema["propertyNames"] = names;
        return schema;
    }
    std::vector<Json> listed;
    if (!none) listed = RL_TRY(listed_keys(names, at, depth));
    Json given = schema.value("properties", Json::object()), properties = Json::object();
    if (!given.is_object()) return error("{}/properties: takes an object", path);
    const KeyRules rules = RL_TRY(key_rules(schema, path));
    for (const auto& [key, value] : given.items())
        properties[key] = lists(Json(listed), key) ? property_schema(schema, rules, key) : Json(false);
    for (const Json& name : listed)
        if (const std::string key = name; !properties.contains(key))
            properties[key] = property_schema(schema, rules, key);
    schema.erase("patternProperties");
    schema["properties"] = properties;
    schema["additionalProperties"] = false;
    return schema;
}

// The strings that a schema of keys lists, and that satisfy its other keywords.
Result<std::vector<Json>> SchemaConverter::listed_keys(const Json& names, const std::string& path,
                                                       size_t depth) {
    const Json list = names.contains("enum") ? names["enum"] : Json::array({names["const"]});
    if (!list.is_array()) return error("{}/enum: takes a list of values", path);
    std::vector<Json> texts;
    for (const Json& each : list)
        if (each.is_string() && (!names.contains("const") || each == names["const"])) texts.push_back(each);
    return fitting(texts, held_keywords(held_keywords(names, "const"), "enum"), path, depth);
}

// The patterns of keys and the rule for names, as automata; an automaton with too many states is an error.
Result<SchemaConverter::KeyRules> SchemaConverter::key_rules(const Json& schema, const std::string& path) {
    const auto automaton = [&](const std::vector<Asked>& all) -> Result<Dfa> {
        std::vector<Condition> conditions;
        for (const Asked& each : all) conditions.push_back(each.condition);
        std::optional<Dfa> dfa = intersection(conditions);
        if (!dfa) return error("{}: its patterns for keys take too many states", path);
        return std::move(*dfa);
    };
    KeyRules out;
    const Json none = Json::object();
    const Json patterns = schema.value("patternProperties", none);
    for (const auto& [pattern, value] : patterns.items()) {
        std::vector<Asked> asked;
        RL_TRY(
            ask_pattern(asked, pattern, member_pointer(member_pointer(path, "patternProperties"), pattern)));
        if (!asked.empty()) out.patterns.emplace_back(RL_TRY(automaton(asked)), value);
    }
    if (schema.contains("propertyNames")) {
        const std::string at = member_pointer(path, "propertyNames");
        out.length = RL_TRY(limits(schema["propertyNames"], "minLength", "maxLength", at));
        const std::vector<Asked> name = RL_TRY(asked(schema["propertyNames"], at));
        out.name = RL_TRY(automaton(name));
    }
    return out;
}

// A property's schema, merged with those of the patterns that its key matches, or, for an unlisted key, with
// the one for others. The rule for names is applied, too.
Json SchemaConverter::property_schema(const Json& schema, const KeyRules& rules,
                                      const std::string& key) const {
    const size_t size = rules.name ? characters(key).size() : 0;
    if (rules.name &&
        (size < rules.length.least || size > rules.length.most.value_or(size) || !matches(*rules.name, key)))
        return false;
    Json parts = Json::array();
    if (const auto all = schema.find("properties"); all != schema.end())
        if (const auto listed = all->find(key); listed != all->end()) parts.push_back(*listed);
    for (const auto& [dfa, value] : rules.patterns)
        if (matches(dfa, key)) parts.push_back(value);
    if (parts.empty()) parts.push_back(schema.value("additionalProperties", Json(true)));
    return parts.size() == 1 ? parts[0] : Json{{"allOf", parts}};
}

Result<std::vector<SchemaConverter::Property>> SchemaConverter::properties(const Json& schema,
                                                                           const std::string& path,
                                                                           size_t depth) {
    const Json listed = schema.value("properties", Json::object());
    const Json required = schema.value("required", Json::array());
    if (!listed.is_object()) return error("{}/properties: takes an object", path);
    const bool texts = required.is_array() && std::all_of(required.begin(), required.end(),
                                                          [](const Json& name) { return name.is_string(); });
    if (!texts) return error("{}/required: takes a list of texts", path);
    std::vector<std::string> keys;
    for (const auto& [key, value] : listed.items()) keys.push_back(key);
    std::set<std::string> known(keys.begin(), keys.end());
    for (const Json& name : required)
        if (known.insert(name).second) keys.push_back(name);
    const std::set<std::string> needed(required.begin(), required.end());
    KeyRules rules;
    if (!keys.empty()) rules = RL_TRY(key_rules(schema, path));
    std::vector<Property> out;
    for (const std::string& key : keys) {
        if (key.size() > kMostKey) return error("{}: a key of more than {} bytes", path, kMostKey);
        const bool is_required = needed.count(key) > 0;
        const std::string at = listed.contains(key)
                                   ? member_pointer(member_pointer(path, "properties"), printable(key))
                                   : member_pointer(path, "additionalProperties");
        const Json value = property_schema(schema, rules, key);
        if (allows_nothing(value)) {
            if (is_required && !listed.contains(key))
                return nothing("{}/required: {} is none of the properties", path, printable(key));
            if (is_required) return nothing("{}: the schema {} allows nothing", at, value.dump());
            out.push_back({key, "", false});
            continue;
        }
        const std::string ws = rules_.use("ws");
        const std::string rule = grouped(RL_TRY(visit(value, at, depth + 1)));
        out.push_back({key, json_literal(key) + " " + ws + " \":\" " + ws + " " + rule, is_required});
    }
    return out;
}

// The keys not in `keys`: a trie, which is left with a character that no key has there.
std::string SchemaConverter::other_key(const std::vector<std::u32string>& keys, size_t depth) {
    std::map<char32_t, std::vector<std::u32string>> children;
    bool ends = false;
    for (const std::u32string& key : keys) {
        if (key.size() == depth) ends = true;
        if (key.size() > depth) children[key[depth]].push_back(key);
    }
    std::string out, excluded;
    for (const auto& [code, below] : children) {
        // Such a character is written as an escape, with which no other key begins.
        if (code < 0x20 || code == '"' || code == '\\' || code == 0x7F) continue;
        std::string text;
        append_utf8(text, code);
        out += gbnf_quoted(text) + " " + other_key(below, depth + 1) + " | ";
        excluded += fmt::format("\\U{:08X}", uint32_t(code));
    }
    out += "[^\"\\\\\\x7F\\x00-\\x1F" + excluded + "] " + rules_.use("char") + "*";
    if (!ends) out += " | \"\"";
    return rules_.add("key", out);
}

SchemaConverter::Text SchemaConverter::other_pairs(const Json& schema, const std::vector<Property>& listed,
                                                   const std::string& path, size_t depth) {
    const Json none = Json::object();
    const bool by_pattern = !schema.value("patternProperties", none).empty();
    const bool named = schema.contains("propertyNames");
    if (by_pattern || named) return pairs_by_pattern(schema, listed, path, depth);
    // Others are written only where the schema mentions or requires them.
    const uint64_t least = RL_TRY(limits(schema, "minProperties", "maxProperties", path)).least;
    Json others = schema.value("additionalProperties", Json(false));
    if (!schema.contains("additionalProperties") && least > listed.size()) others = true;
    if (allows_nothing(others)) return std::string();
    const std::string at = member_pointer(path, "additionalProperties");
    const std::string value = grouped(RL_TRY(visit(others, at, depth + 1)));
    std::vector<std::u32string> keys;
    for (const Property& property : listed) keys.push_back(characters(property.key));
    const std::string key = keys.empty() ? rules_.use("string") : quoted(other_key(keys, 0));
    const std::string ws = rules_.use("ws");
    return rules_.add("pair", key + " " + ws + " \":\" " + ws + " " + value);
}

// Groups keys by the set of patterns that they match: their values must satisfy all of these; keys that match
// none follow the schema for others.
SchemaConverter::Text SchemaConverter::pairs_by_pattern(const Json& schema,
                                                        const std::vector<Property>& listed,
                                                        const std::string& path, size_t depth) {
    const std::string at = member_pointer(path, "patternProperties"),
                      names_at = member_pointer(path, "propertyNames");
    const Json names = schema.value("propertyNames", Json::object());
    std::vector<Asked> always = RL_TRY(asked(names, names_at));
    Json keys = Json::array();
    for (const Property& property : listed) keys.push_back(property.key);
    for (Asked& each : RL_TRY(asked(Json{{kNotTexts, keys}}, path))) always.push_back(std::move(each));
    const Limits length = RL_TRY(limits(names, "minLength", "maxLength", names_at));
    std::vector<std::pair<Asked, Json>> patterns;
    const Json by_pattern = schema.value("patternProperties", Json::object());
    for (const auto& [pattern, value] : by_pattern.items()) {
        std::vector<Asked> one;
        RL_TRY(ask_pattern(one, pattern, member_pointer(at, pattern)));
        if (!one.empty()) patterns.emplace_back(one[0], value);
    }
    if (patterns.size() > kMostPatterns)
        RL_TRY(not_held(at, fmt::format("keys that match two of more than {} patterns", kMostPatterns)));
    const bool apart = patterns.size() <= kMostPatterns;
    const Json others = schema.value("additionalProperties", Json(!schema.contains("patternProperties")));
    std::string out;
    const size_t sets = apart ? size_t(1) << patterns.size() : patterns.size() + 1;
    for (size_t set = 0; set < sets; ++set) {
        std::vector<Asked> conditions = always;
        Json parts = Json::array();
        for (size_t i = 0; i < patterns.size(); ++i) {
            const bool matched = apart ? (set >> i & 1) != 0 : i + 1 == set;
            if (!matched && !apart && set > 0) continue;
            conditions.push_back(patterns[i].first);
            conditions.back().condition.negated = !matched;
            if (matched) parts.push_back(patterns[i].second);
        }
        if (parts.empty()) parts.push_back(others);
        const Json value = parts.size() == 1 ? parts[0] : Json{{"allOf", parts}};
        if (std::any_of(parts.begin(), parts.end(), allows_nothing)) continue;
        is_nothing_ = false;
        const Text key = string_of(conditions, length, set > 0 ? at : names_at);
        if (!key && std::exchange(is_nothing_, false)) continue;
        const std::string key_rule = RL_TRY(Text(key));
        const std::string rule = grouped(
            RL_TRY(visit(value, set > 0 ? at : member_pointer(path, "additionalProperties"), depth + 1)));
        const std::string ws = rules_.use("ws");
        out += (out.empty() ? "" : " | ") + key_rule + " " + ws + " \":\" " + ws + " " + rule;
    }
    return out.empty() ? out : rules_.add("pair", out);
}

SchemaConverter::Text SchemaConverter::object(const Json& given, const std::string& path, size_t depth) {
    Json schema = given;
    // Properties are unevaluated when they are neither listed nor matched by a pattern.
    const Json others = schema.value("unevaluatedProperties", Json(true));
    if (others != true && !schema.contains("additionalProperties")) schema["additionalProperties"] = others;
    schema = RL_TRY(with_named_keys(std::move(schema), path, depth));
    const std::vector<Property> all = RL_TRY(properties(schema, path, depth));
    const Limits size = RL_TRY(limits(schema, "minProperties", "maxProperties", path));
    const bool free = !schema.contains("patternProperties") && !schema.contains("propertyNames") &&
                      (schema.value("additionalProperties", Json(true)) == true);
    if (all.empty() && free && !size.given) return rules_.use("object");
    if (all.empty() && free) schema["additionalProperties"] = true;
    const std::string other = RL_TRY(other_pairs(schema, all, path, depth));
    std::vector<Property> list;
    for (const Property& property : all)
        if (!property.text.empty()) list.push_back(property);
    return members(list, other, size, path);
}

// Rules for the members that may follow those so far, built from the last one on, and for each possible count
// where the number of members is limited.
SchemaConverter::Text SchemaConverter::members(const std::vector<Property>& list, const std::string& other,
                                               const Limits& size, const std::string& path) {
    const auto required = uint64_t(
        std::count_if(list.begin(), list.end(), [](const Property& property) { return property.required; }));
    uint64_t least = size.least > required ? size.least : 0;
    std::optional<uint64_t> most =
        !other.empty() || list.size() > size.most.value_or(list.size()) ? size.most : std::nullopt;
    if (most && *most < required)
        return nothing("{}/maxProperties: {} is fewer than the {} that are required", path, *most, required);
    if (other.empty() && least > list.size())
        return nothing("{}/minProperties: {} is more than the {} properties that there are", path, least,
                       list.size());
    if ((list.size() + 1) * (most.value_or(least) + 1) > kMostCells && !list.empty()) {
        RL_TRY(not_held(member_pointer(path, least > 0 ? "minProperties" : "maxProperties"),
                        "it takes too many rules"));
        least = 0;
        most.reset();
    }
    if (!other.empty() && least > 1)
        RL_TRY(not_held(member_pointer(path, "minProperties"), "a key that comes twice is counted twice"));
    const std::string ws = rules_.use("ws");
    const std::string comma = ws + " \",\" " + ws + " ";
    const uint64_t counts = list.empty() ? 0 : most.value_or(least);
    // By the number of properties so far, up to where it makes no difference; empty: the object cannot be
    // completed.
    std::vector<std::optional<std::string>> follow(counts + 1), begin(1);
    const auto others_after = [&](uint64_t count) -> std::optional<std::string> {
        if (most && count > *most) return {};
        const uint64_t missing = least > count ? least - count : 0;
        if (other.empty()) return missing > 0 ? std::nullopt : std::optional<std::string>("\"\"");
        const auto left = most ? std::optional(*most - count) : std::nullopt;
        return rules_.add("more", repeated("(" + comma + other + ")", missing, left));
    };
    for (uint64_t count = 0; count <= counts; ++count) follow[count] = others_after(count);
    begin[0] = least == 0 ? std::optional<std::string>("\"\"") : std::nullopt;
    if (!other.empty() && most.value_or(1) > 0) {
        const std::string first = other + " " + *others_after(1) + " " + ws;
        begin[0] = rules_.add("first", least == 0 ? "(" + first + ")?" : first);
    }
    for (size_t i = list.size(); i-- > 0;) {
        const Property& property = list[i];
        const std::string pair = rules_.add("pair", property.text);
        const auto choice = [&](const std::string& lead, const std::optional<std::string>& then,
                                const std::string& end,
                                const std::optional<std::string>& without) -> std::optional<std::string> {
            std::string out = then ? lead + pair + " " + *then + end : "";
            if (!property.required && without) out += (out.empty() ? "" : " | ") + *without;
            return out.empty() ? std::nullopt
                               : std::optional(rules_.add(lead.empty() ? "first" : "more", out));
        };
        const auto after = [&](uint64_t count) -> const std::optional<std::string>& {
            static const std::optional<std::string> kNone;
            return most && count >= *most ? kNone : follow[std::min(count + 1, counts)];
        };
        begin[0] = choice("", after(0), " " + ws, begin[0]);
        for (uint64_t count = 0; count <= counts; ++count)
            follow[count] = choice(comma, after(count), "", follow[count]);
    }
    if (!begin[0]) return nothing("{}: no number of properties is within the limits", path);
    return rules_.add("object", "\"{\" " + ws + " " + *begin[0] + " \"}\"");
}

}  // namespace redline
