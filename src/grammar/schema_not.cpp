// Schemas with `not`: removes the excluded values from those that the other keywords allow, where these can
// express it.
#include "grammar/schema_converter.h"
#include "grammar/schema_merge.h"

#include <algorithm>

namespace redline {
namespace {

bool has_only(const Json& schema, std::initializer_list<std::string_view> keys) {
    for (const auto& [key, value] : schema.items())
        if (std::find(keys.begin(), keys.end(), key) == keys.end()) return false;
    return true;
}

// Appends to the exclusions so far.
void append(Json& schema, const char* key, const Json& list) {
    Json all = schema.value(key, Json::array());
    for (const Json& each : list)
        if (std::find(all.begin(), all.end(), each) == all.end()) all.push_back(each);
    schema[key] = all;
}

std::vector<std::string> as_texts(const Json& list) {
    std::vector<std::string> out;
    for (const Json& each : list.is_array() ? list : Json::array({list}))
        if (each.is_string()) out.push_back(each);
    return out;
}

// The types of a schema; all types where it names none.
Json type_list(const Json& schema) {
    if (schema.contains("type")) return as_texts(schema["type"]);
    return {"object", "array", "string", "number", "boolean", "null"};
}

// False: the remaining types cannot be named.
bool exclude_types(Json& schema, const std::vector<std::string>& types) {
    Json left = Json::array();
    const auto is = [&](std::string_view name) {
        return std::find(types.begin(), types.end(), name) != types.end();
    };
    for (const Json& type : type_list(schema)) {
        const std::string& name = type.get_ref<const std::string&>();
        if (name == "number" && is("integer") && !is("number")) return false;
        const bool excluded = is(name) || (name == "integer" && is("number"));
        if (!excluded) left.push_back(type);
    }
    schema["type"] = left;
    if (left.empty()) schema = nothing_schema("no type is left that the schema allows");
    return true;
}

// False: numbers, arrays and objects cannot be excluded by value.
bool exclude_values(Json& schema, const Json& values) {
    if (!values.is_array()) return false;
    const auto is_excluded = [&](const Json& value) {
        return std::find(values.begin(), values.end(), value) != values.end();
    };
    if (schema.contains("const")) {
        if (is_excluded(schema["const"])) schema = nothing_schema("the value of const is excluded");
        return true;
    }
    if (schema.contains("enum") && schema["enum"].is_array()) {
        Json left = Json::array();
        for (const Json& value : schema["enum"])
            if (!is_excluded(value)) left.push_back(value);
        schema["enum"] = left;
        if (left.empty()) schema = nothing_schema("each value of the enum is excluded");
        return true;
    }
    const Json types = type_list(schema);
    const auto takes = [&](std::string_view type) {
        return std::any_of(types.begin(), types.end(), [&](const Json& one) {
            return one.is_string() && one.get_ref<const std::string&>() == type;
        });
    };
    Json texts = Json::array();
    std::vector<std::string> whole;  // types that are excluded
    for (const Json& value : values) {
        if (value.is_string()) texts.push_back(value);
        if (value.is_null()) whole.emplace_back("null");
        const bool number = value.is_number() && (takes("number") || takes("integer"));
        if (number || (value.is_structured() && takes(value.type_name()))) return false;
    }
    const Json truth = true, falsehood = false;
    const bool yes = is_excluded(truth), no = is_excluded(falsehood);
    if (takes("boolean") && yes != no) return false;
    if (yes && no) whole.emplace_back("boolean");
    if (!texts.empty() && takes("string")) append(schema, kNotTexts, texts);
    return whole.empty() || exclude_types(schema, whole);
}

// False: nothing was changed.
bool exclude(Json& schema, const Json& excluded) {
    if (has_only(excluded, {"type"})) return exclude_types(schema, as_texts(excluded["type"]));
    if (has_only(excluded, {"const", "type"}) && excluded.contains("const"))
        return exclude_values(schema, Json::array({excluded["const"]}));
    if (has_only(excluded, {"enum", "type"}) && excluded.contains("enum"))
        return exclude_values(schema, excluded["enum"]);
    const Json types = type_list(schema);
    const bool texts =
        types.size() == 1 && types[0] == "string" && !schema.contains("enum") && !schema.contains("const");
    if (!texts || !has_only(excluded, {"pattern", "type"}) || !excluded.contains("pattern")) return false;
    if (excluded.contains("type") && excluded["type"] != "string") return false;
    append(schema, kNotPatterns,
           excluded["pattern"].is_array() ? excluded["pattern"] : Json::array({excluded["pattern"]}));
    return true;
}

}  // namespace

Result<Json> SchemaConverter::without_not(const Json& schema, const std::string& path, size_t depth) {
    const std::string at = member_pointer(path, "not");
    Json rest = schema;
    rest.erase("not");
    Json excluded = RL_TRY(part(schema["not"], at, depth + 1));
    if (allows_nothing(excluded)) return rest;
    // Excluding several alternatives means excluding each.
    Json each = Json::array({excluded});
    if (excluded.size() == 1 && excluded.contains("anyOf") && excluded["anyOf"].is_array())
        each = excluded["anyOf"];
    for (const Json& one : each) {
        const Json whole = RL_TRY(part(one, at, depth + 1));
        if (whole.empty()) return nothing_schema("the schema allows nothing");
        if (!exclude(rest, whole)) RL_TRY(not_held(at));
        if (rest.contains(kWhyNothing)) return rest;
    }
    return rest;
}

}  // namespace redline
