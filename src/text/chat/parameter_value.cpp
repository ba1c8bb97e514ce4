#include "text/chat/parameter_value.h"

#include "text/chat/loose_value.h"

#include <algorithm>

namespace redline {

namespace {

constexpr int kDeepestSchema = 16;
constexpr int kMostVisits = 10'000;  // of schemas, which may refer to each other in many ways

// Types that a schema has, a bit each.
enum : uint32_t {
    kString = 1,
    kNumber = 2,
    kBoolean = 4,
    kNull = 8,
    kObject = 16,
    kArray = 32,
    kAny = 63,
};

uint32_t type_of(const Json& value) {
    if (value.is_string()) return kString;
    if (value.is_number()) return kNumber;
    if (value.is_boolean()) return kBoolean;
    if (value.is_null()) return kNull;
    return value.is_object() ? kObject : kArray;
}

uint32_t named_type(const Json& name) {
    static constexpr std::pair<std::string_view, uint32_t> kTypes[] = {
        {"string", kString}, {"number", kNumber}, {"integer", kNumber}, {"boolean", kBoolean},
        {"null", kNull},     {"object", kObject}, {"array", kArray}};
    if (!name.is_string()) return kAny;
    const auto& text = name.get_ref<const std::string&>();
    for (const auto& [type, bit] : kTypes)
        if (text == type) return bit;
    return kAny;
}

// The schema that "#/$defs/X" names; null where it names nothing.
const Json* referred(const Json& root, const Json& schema) {
    const auto found = schema.find("$ref");
    if (found == schema.end() || !found->is_string()) return nullptr;
    const auto& name = found->get_ref<const std::string&>();
    const Json* at = &root;
    if (!name.starts_with("#/")) return nullptr;
    for (size_t begin = 2; begin <= name.size();) {
        const size_t end = std::min(name.find('/', begin), name.size());
        const auto next = at->find(name.substr(begin, end - begin));
        if (!at->is_object() || next == at->end()) return nullptr;
        at = &*next;
        begin = end + 1;
    }
    return at;
}

uint32_t types_of(const Json& root, const Json& schema, int& visits, int depth = 0) {
    if (!schema.is_object() || depth > kDeepestSchema || ++visits > kMostVisits) return kAny;
    if (const Json* other = referred(root, schema)) return types_of(root, *other, visits, depth + 1);
    uint32_t types = kAny;
    const auto narrow = [&](const char* key, const auto& types_in) {
        const auto list = schema.find(key);
        if (list == schema.end() || !list->is_array() || list->empty()) return;
        uint32_t all = 0;
        for (const Json& each : *list) all |= types_in(each);
        types &= all;
    };
    const auto in_schema = [&](const Json& each) { return types_of(root, each, visits, depth + 1); };
    if (schema.contains("type") && schema["type"].is_string()) types = named_type(schema["type"]);
    narrow("type", named_type);
    narrow("enum", type_of);
    narrow("anyOf", in_schema);
    narrow("oneOf", in_schema);
    if (schema.contains("const")) types &= type_of(schema["const"]);
    if (const auto all = schema.find("allOf"); all != schema.end() && all->is_array())
        for (const Json& each : *all) types &= in_schema(each);
    const auto nullable = schema.find("nullable");
    if (nullable != schema.end() && nullable->is_boolean() && nullable->get<bool>()) types |= kNull;
    return types;
}

uint32_t parameter_types(const Json* function, std::string_view key) {
    if (!function || !function->contains("parameters")) return kAny;
    const Json& parameters = (*function)["parameters"];
    if (!parameters.is_object()) return kAny;
    int visits = 0;
    if (const Json* properties = find_properties(*function)) {
        const auto found = properties->find(std::string(key));
        if (found != properties->end()) return types_of(parameters, *found, visits);
    }
    const auto others = parameters.find("additionalProperties");
    return others == parameters.end() ? uint32_t(kAny) : types_of(parameters, *others, visits);
}

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view kAround = " \t\r\n";
    text.remove_prefix(std::min(text.find_first_not_of(kAround), text.size()));
    return text.substr(0, text.find_last_not_of(kAround) + 1);
}

// Discarded where it is none.
Json literal(std::string_view text) {
    if (text == "True") return true;
    if (text == "False") return false;
    if (text == "None") return nullptr;
    const bool nested = text.starts_with('{') || text.starts_with('[');
    // Nested so deep that what goes through it could exhaust the stack.
    if (nested && json_end(text, 0) != text.size()) return Json(Json::value_t::discarded);
    return read_json(text);
}

}  // namespace

const Json* find_function(const Json& tools, std::string_view name) {
    if (!tools.is_array()) return nullptr;
    for (const Json& tool : tools) {
        const bool wrapped = tool.is_object() && tool.contains("function") && tool["function"].is_object();
        const Json& function = wrapped ? tool["function"] : tool;
        if (!function.is_object() || !function.contains("name") || !function["name"].is_string()) continue;
        if (function["name"].get_ref<const std::string&>() == name) return &function;
    }
    return nullptr;
}

bool needs_no_arguments(const Json& function) {
    if (!function.contains("parameters") || !function["parameters"].is_object()) return true;
    const Json& parameters = function["parameters"];
    return !parameters.contains("required") || parameters["required"].empty();
}

const Json* find_properties(const Json& function) {
    const auto parameters = function.find("parameters");
    if (parameters == function.end() || !parameters->is_object()) return nullptr;
    const auto properties = parameters->find("properties");
    return properties != parameters->end() && properties->is_object() ? &*properties : nullptr;
}

Json parameter_value(const Json* function, std::string_view key, std::string_view text) {
    const uint32_t types = parameter_types(function, key);
    if (types == kString) return text;
    Json value = literal(trimmed(text));
    if (!value.is_discarded() && (type_of(value) & types)) return value;
    if (types & (kObject | kArray) && !(types & kString)) {
        // Some models write objects as Python shows them.
        size_t at = 0;
        Mending mending;
        const std::string_view bare = trimmed(text);
        std::optional<Json> read = read_mended_json(bare, at, mending);
        if (read && at == bare.size() && (type_of(*read) & types)) return std::move(*read);
    }
    return text;
}

bool fits_parameter(const Json* function, std::string_view key, std::string_view text) {
    return (type_of(parameter_value(function, key, text)) & parameter_types(function, key)) != 0;
}

bool is_required(const Json& function, std::string_view key) {
    if (needs_no_arguments(function)) return false;
    const Json& required = function["parameters"]["required"];
    return required.is_array() && std::find(required.begin(), required.end(), Json(key)) != required.end();
}

}  // namespace redline
