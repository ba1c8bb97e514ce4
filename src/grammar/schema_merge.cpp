#include "grammar/schema_merge.h"

#include "grammar/schema_keywords.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace redline {
namespace {

constexpr size_t kMostPairs = 1000;  // of branches

Json as_list(const Json& value) {
    return value.is_array() ? value : Json::array({value});
}

bool contains(const Json& list, const Json& value) {
    return std::find(list.begin(), list.end(), value) != list.end();
}

Json all_of(const Json& a, const Json& b) {
    if (a == false || b == false) return false;
    return a == b ? a : Json{{"allOf", Json::array({a, b})}};
}

bool is_type_of(const Json& type, const Json& narrower) {
    return type == narrower || (type == "number" && narrower == "integer");
}

Json common_types(const Json& a, const Json& b) {
    Json out = Json::array();
    for (const Json& one : as_list(a))
        for (const Json& other : as_list(b))
            if ((is_type_of(one, other) || is_type_of(other, one)) &&
                !contains(out, is_type_of(one, other) ? other : one))
                out.push_back(is_type_of(one, other) ? other : one);
    return out;
}

Json both_lists(Json a, const Json& b) {
    for (const Json& each : b)
        if (!contains(a, each)) a.push_back(each);
    return a;
}

Json common_values(const Json& a, const Json& b) {
    Json out = Json::array();
    for (const Json& one : a)
        if (contains(b, one)) out.push_back(one);
    return out;
}

// The schema of a property that only the other part lists.
Json unlisted(const Json& part) {
    return part.value("additionalProperties", Json(true));
}

// The properties of both parts; each one's constraints on unlisted properties are applied. Empty where
// patterns decide about unlisted ones.
std::optional<Json> common_properties(const Json& a, const Json& b) {
    const Json none = Json::object();
    const Json of_a = a.value("properties", none), of_b = b.value("properties", none);
    if (!of_a.is_object() || !of_b.is_object()) return {};
    Json out = Json::object();
    for (const auto& [name, schema] : of_a.items()) {
        const Json other = of_b.contains(name) ? of_b[name] : unlisted(b);
        if (!of_b.contains(name) && other != true && b.contains("patternProperties")) return {};
        out[name] = other == true ? schema : all_of(schema, other);
    }
    for (const auto& [name, schema] : of_b.items()) {
        if (of_a.contains(name)) continue;
        const Json other = unlisted(a);
        if (other != true && a.contains("patternProperties")) return {};
        out[name] = other == true ? schema : all_of(other, schema);
    }
    return out;
}

// The keyword with which one part constrains unlisted items or properties that the other lists; empty: there
// is none.
std::string_view unjoined(const Json& a, const Json& b) {
    const auto asks = [](const Json& part, const char* key) {
        return part.contains(key) && part[key] != true && part[key] != Json::object();
    };
    const auto has_list = [](const Json& part) { return part.contains("items") && part["items"].is_array(); };
    const bool prefix_a = a.contains("prefixItems"), prefix_b = b.contains("prefixItems");
    if (prefix_a && !prefix_b && asks(b, "items")) return "items";
    if (has_list(a) && prefix_b) return "items";
    const Json none = Json::object();
    if (!asks(a, "additionalProperties") || !b.contains("patternProperties")) return {};
    const Json mine = a.value("patternProperties", none);
    for (const auto& [pattern, schema] : b["patternProperties"].items())
        if (!mine.contains(pattern)) return "additionalProperties";
    return {};
}

// Every combination of a branch of one and a branch of the other.
std::optional<Json> pairs(const Json& a, const Json& b) {
    if (!a.is_array() || !b.is_array() || a.size() * b.size() > kMostPairs) return {};
    Json out = Json::array();
    for (const Json& one : a)
        for (const Json& other : b) out.push_back(all_of(one, other));
    return out;
}

// The stricter of two values of a keyword that is not about types and lists.
std::optional<Json> narrower(const std::string& key, const Json& a, const Json& b) {
    const auto is = [&](std::initializer_list<std::string_view> keys) {
        return std::find(keys.begin(), keys.end(), key) != keys.end();
    };
    const bool numbers = a.is_number() && b.is_number();
    if (numbers && is({"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"}))
        return std::max(a, b);
    if (numbers && is({"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"}))
        return std::min(a, b);
    if (is({"pattern", "format", kNotTexts, kNotPatterns})) return both_lists(as_list(a), as_list(b));
    if (is({"uniqueItems"})) return a == true || b == true;
    if (is({"nullable"})) return a == true && b == true;
    if (is({"additionalProperties", "propertyNames", "items", "additionalItems", "unevaluatedProperties",
            "unevaluatedItems"}) &&
        !a.is_array() && !b.is_array())
        return a == true ? b : b == true ? a : a == false || b == false ? Json(false) : all_of(a, b);
    if (is({"not"})) return Json{{"anyOf", Json::array({a, b})}};
    if (is({"anyOf", "oneOf"})) return pairs(a, b);
    if (is({"patternProperties"}) && a.is_object() && b.is_object()) {
        Json out = a;
        for (const auto& [pattern, schema] : b.items())
            out[pattern] = out.contains(pattern) ? all_of(out[pattern], schema) : schema;
        return out;
    }
    if (is({"multipleOf"}) && a.is_number_unsigned() && b.is_number_unsigned() && a > 0 && b > 0 &&
        a < 1'000'000'000 && b < 1'000'000'000)
        return std::lcm(a.get<uint64_t>(), b.get<uint64_t>());
    return {};
}

// A part that has a type other than null excludes the null that the other allows.
void settle_null(Json& both, const Json& a, const Json& b) {
    if (a.contains("nullable") == b.contains("nullable")) return;
    const Json& other = a.contains("nullable") ? b : a;
    if (other.contains("type") || other.contains("enum") || other.contains("const")) both.erase("nullable");
}

Error different(const std::string& path, std::string_view key) {
    return error("{}: different {} in the parts of allOf, or beside $ref or anyOf, are not supported", path,
                 key);
}

}  // namespace

Json close_unevaluated(Json schema) {
    const bool old_list = schema.contains("items") && schema["items"].is_array();
    const std::pair<const char*, const char*> keys[] = {
        {"unevaluatedProperties", "additionalProperties"},
        {"unevaluatedItems", old_list ? "additionalItems" : "items"}};
    Json asked = Json::object();
    for (const auto& [unevaluated, listed] : keys) {
        if (schema.contains(unevaluated)) asked[unevaluated] = schema[unevaluated];
        schema.erase(unevaluated);
    }
    if (asked.empty()) return schema;
    // The branches list different properties and items.
    for (const char* key : {"anyOf", "oneOf"}) {
        if (!schema.contains(key) || !schema[key].is_array()) continue;
        Json branches = schema[key];
        schema.erase(key);
        for (Json& branch : branches) {
            Json closed = asked;
            closed["allOf"] = Json::array({schema, branch});
            branch = std::move(closed);
        }
        return Json{{key, branches}};
    }
    for (const auto& [unevaluated, listed] : keys)
        if (asked.contains(unevaluated) && asked[unevaluated] != true && !schema.contains(listed))
            schema[listed] = asked[unevaluated];
    return schema;
}

Json nothing_schema(const std::string& why) {
    return Json{{"not", Json::object()}, {kWhyNothing, why}};
}

Result<Json> merge_schemas(Json a, const Json& b, const std::string& path) {
    if (a.contains(kWhyNothing)) return a;
    if (b.contains(kWhyNothing)) return b;
    const Json before = a;
    for (const auto& [key, value] : b.items()) {
        if (!is_held(key)) continue;
        if (!a.contains(key)) a[key] = value;
        if (a[key] == value || key == "properties") continue;
        Json& mine = a[key];
        if (key == "type") {
            mine = common_types(mine, value);
            if (mine.empty()) return nothing_schema("no type is in all parts of allOf");
        } else if (key == "enum" && mine.is_array() && value.is_array()) {
            mine = common_values(mine, value);
            if (mine.empty()) return nothing_schema("no value is in every enum of allOf");
        } else if (key == "const") {
            return nothing_schema("the parts of allOf have different values of const");
        } else if (key == "required" && mine.is_array() && value.is_array()) {
            mine = both_lists(mine, value);
        } else if (const std::optional<Json> both = narrower(key, mine, value)) {
            mine = *both;
        } else {
            return different(path, key);
        }
    }
    for (const std::string_view key : {unjoined(before, b), unjoined(b, before)})
        if (!key.empty()) return different(path, key);
    if (a.contains("properties")) {
        const std::optional<Json> both = common_properties(before, b);
        if (!both)
            return error("{}: properties beside patternProperties in the parts of allOf are not supported",
                         path);
        a["properties"] = *both;
    }
    settle_null(a, before, b);
    return a;
}

}  // namespace redline
