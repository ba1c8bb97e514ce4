#include "grammar/schema_disjoint.h"

#include <algorithm>
#include <set>
#include <string>

namespace redline {
namespace {

constexpr int kMostDepth = 6;
constexpr const char* kTypes[] = {"object", "array", "string", "number", "integer", "boolean", "null"};

std::string type_of(const Json& value) {
    return value.is_number_integer() ? "integer" : value.is_number() ? "number" : value.type_name();
}

// The values that a schema lists; empty where it lists none.
std::optional<Json> values_of(const Json& schema) {
    if (schema.contains("const")) return Json::array({schema["const"]});
    if (schema.contains("enum") && schema["enum"].is_array()) return schema["enum"];
    return {};
}

std::set<std::string> types_of(const Json& schema) {
    std::set<std::string> types;
    const Json type = schema.value("type", Json());
    if (const std::optional<Json> values = values_of(schema))
        for (const Json& value : *values) types.insert(type_of(value));
    else
        for (const Json& each : type.is_array() ? type : Json::array({type}))
            if (each.is_string()) types.insert(each.get<std::string>());
    if (types.empty()) types.insert(std::begin(kTypes), std::end(kTypes));
    if (types.count("number") > 0) types.insert("integer");
    if (schema.value("nullable", Json()) == true) types.insert("null");
    return types;
}

// True when one schema's upper limit is below the other's lower limit.
bool apart(const Json& a, const Json& b, const char* least, const char* most) {
    const auto number = [](const Json& schema, const char* key) {
        const Json value = schema.value(key, Json());
        return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
    };
    for (const auto& [low, high] : {std::pair(&a, &b), std::pair(&b, &a)}) {
        const std::optional<double> from = number(*low, least), to = number(*high, most);
        if (from && to && *to < *from) return true;
    }
    return false;
}

bool requires_key(const Json& schema, const std::string& key) {
    const Json required = schema.value("required", Json::array());
    return required.is_array() && std::find(required.begin(), required.end(), Json(key)) != required.end();
}

bool lists_key(const Json& schema, const std::string& key) {
    return schema.contains("properties") && schema["properties"].contains(key);
}

std::set<std::string> keys_of(const Json& schema) {
    std::set<std::string> keys;
    const Json required = schema.value("required", Json::array()), none = Json::object();
    if (required.is_array())
        for (const Json& key : required)
            if (key.is_string()) keys.insert(key.get<std::string>());
    const Json listed = schema.value("properties", none);
    if (listed.is_object())
        for (const auto& [key, value] : listed.items()) keys.insert(key);
    return keys;
}

bool never_valid(const Json& made, const Json& other, const ResolveSchema& resolve, int depth);

bool objects_apart(const Json& made, const Json& other, const ResolveSchema& resolve, int depth) {
    const Json more = made.value("additionalProperties", Json(false));
    const bool by_pattern = made.contains("patternProperties") || made.contains("propertyNames") ||
                            made.contains("minProperties");
    for (const std::string& key : keys_of(other)) {
        const bool written = lists_key(made, key) || requires_key(made, key) || more != false || by_pattern;
        if (requires_key(other, key) && !written) return true;
        const bool there = requires_key(made, key) || requires_key(other, key);
        if (there && lists_key(made, key) && lists_key(other, key) &&
            never_valid(made["properties"][key], other["properties"][key], resolve, depth + 1))
            return true;
    }
    const bool closed =
        other.value("additionalProperties", Json(true)) == false && !other.contains("patternProperties");
    const std::set<std::string> mine = keys_of(made);
    return closed && std::any_of(mine.begin(), mine.end(), [&](const std::string& key) {
               return requires_key(made, key) && !lists_key(other, key);
           });
}

// True when no text that is made for one schema is valid for the other.
bool never_valid(const Json& made, const Json& other, const ResolveSchema& resolve, int depth) {
    if (depth > kMostDepth) return false;
    const std::optional<Json> a = resolve(made), b = resolve(other);
    if (!a || !b) return false;
    if (a->contains("nullable") && b->contains("nullable")) return false;
    for (const char* key : {"anyOf", "oneOf"}) {
        const auto all = [&](const Json& list, const auto& excluded) {
            return list.is_array() && std::all_of(list.begin(), list.end(), excluded);
        };
        if (a->contains(key))
            return all((*a)[key], [&](const Json& one) { return never_valid(one, *b, resolve, depth + 1); });
        if (b->contains(key) && key == std::string("anyOf"))
            return all((*b)[key], [&](const Json& one) { return never_valid(*a, one, resolve, depth + 1); });
    }
    const std::optional<Json> values = values_of(*a), others = values_of(*b);
    if (values && others && !a->contains("nullable") && !b->contains("nullable"))
        return std::none_of(values->begin(), values->end(), [&](const Json& value) {
            return std::find(others->begin(), others->end(), value) != others->end();
        });
    const std::set<std::string> types = types_of(*a), other_types = types_of(*b);
    return std::all_of(types.begin(), types.end(), [&](const std::string& type) {
        if (other_types.count(type) == 0) return true;
        if (type == "object") return objects_apart(*a, *b, resolve, depth);
        if (type == "array") return apart(*a, *b, "minItems", "maxItems");
        if (type == "string") return apart(*a, *b, "minLength", "maxLength");
        return (type == "number" || type == "integer") && apart(*a, *b, "minimum", "maximum");
    });
}

// The values of a schema, or of a property that it requires; empty where it lists none.
std::optional<Json> values_at(const Json& schema, const std::string& key, const ResolveSchema& resolve) {
    if (schema.contains("nullable")) return {};
    if (key.empty()) return values_of(schema);
    if (types_of(schema) != std::set<std::string>{"object"} || !requires_key(schema, key) ||
        !lists_key(schema, key))
        return {};
    const std::optional<Json> property = resolve(schema["properties"][key]);
    return property && !property->contains("nullable") ? values_of(*property) : std::nullopt;
}

// True when all schemas list values, directly or at one required property, and no value occurs twice: this
// avoids comparing thousands of branches in pairs.
bool told_apart(const std::vector<Json>& schemas, const ResolveSchema& resolve) {
    std::vector<Json> whole;
    for (const Json& schema : schemas) {
        const std::optional<Json> one = resolve(schema);
        if (!one || one->contains("anyOf") || one->contains("oneOf")) return false;
        whole.push_back(*one);
    }
    std::set<std::string> keys = keys_of(whole[0]);
    keys.insert("");
    return std::any_of(keys.begin(), keys.end(), [&](const std::string& key) {
        std::set<std::string> seen;
        for (const Json& schema : whole) {
            const std::optional<Json> values = values_at(schema, key, resolve);
            if (!values) return false;
            for (const Json& value : *values)
                // The numbers 1 and 1.0 are the same value.
                if (!seen.insert((value.is_number() ? Json(value.get<double>()) : value).dump()).second)
                    return false;
        }
        return true;
    });
}

}  // namespace

std::optional<std::pair<size_t, size_t>> overlap(const std::vector<Json>& schemas,
                                                 const ResolveSchema& resolve) {
    if (told_apart(schemas, resolve)) return {};
    for (size_t i = 0; i < schemas.size(); ++i)
        for (size_t j = 0; j < schemas.size(); ++j)
            if (i != j && !never_valid(schemas[i], schemas[j], resolve, 0)) return std::pair(i, j);
    return {};
}

}  // namespace redline
