#include "grammar/schema_merge.h"

#include <algorithm>

namespace redline {
namespace {

Json as_list(const Json& value) {
    return value.is_array() ? value : Json::array({value});
}

bool contains(const Json& list, const Json& value) {
    return std::find(list.begin(), list.end(), value) != list.end();
}

bool is_type_of(const Json& type, const Json& narrower) {
    return type == narrower || (type == "number" && narrower == "integer");
}

Json common_types(const Json& a, const Json& b) {
    Json out = Json::array();
    for (const Json& one : as_list(a))
        for (const Json& other : as_list(b))
            if (is_type_of(one, other) || is_type_of(other, one))
                out.push_back(is_type_of(one, other) ? other : one);
    return out;
}

}  // namespace

Result<Json> merge_schemas(Json a, const Json& b, const std::string& path) {
    for (const auto& [key, value] : b.items()) {
        if (!a.contains(key)) {
            a[key] = value;
            continue;
        }
        Json& mine = a[key];
        if (mine == value || key == "title" || key == "description" || key == "default" ||
            key == "examples" || key == "$comment" || key == "$defs" || key == "definitions")
            continue;
        const bool numbers = mine.is_number() && value.is_number();
        if (key == "type") {
            mine = common_types(mine, value);
            if (mine.empty()) return error("{}: no type is in all parts of allOf", path);
        } else if (key == "properties" && mine.is_object() && value.is_object()) {
            for (const auto& [name, schema] : value.items())
                mine[name] =
                    mine.contains(name) ? Json{{"allOf", Json::array({mine[name], schema})}} : schema;
        } else if (key == "required" && mine.is_array() && value.is_array()) {
            for (const Json& name : value)
                if (!contains(mine, name)) mine.push_back(name);
        } else if (key == "enum" && mine.is_array() && value.is_array()) {
            Json both = Json::array();
            for (const Json& one : mine)
                if (contains(value, one)) both.push_back(one);
            if (both.empty()) return error("{}: no value is in every enum of allOf", path);
            mine = both;
        } else if (numbers && (key == "minimum" || key == "exclusiveMinimum" || key == "minLength" ||
                               key == "minItems")) {
            mine = std::max(mine, value);
        } else if (numbers && (key == "maximum" || key == "exclusiveMaximum" || key == "maxLength" ||
                               key == "maxItems")) {
            mine = std::min(mine, value);
        } else if (key == "additionalProperties" && (mine == true || value == true)) {
            mine = mine == true ? value : mine;
        } else {
            return error("{}: different {} in the parts of allOf, or beside $ref or anyOf, are not supported",
                         path, key);
        }
    }
    return a;
}

}  // namespace redline
