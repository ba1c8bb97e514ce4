// Numbers: bounds and steps, in decimal.
#include "grammar/schema_converter.h"
#include "grammar/schema_formats.h"
#include "text/tokens/unicode.h"

#include <algorithm>

namespace redline {
namespace {

constexpr size_t kMostDigits = 40;  // of a bound, on each side of its point

// Keeps the narrower of two bounds; `sign` 1: the lower ones.
void take_bound(std::optional<NumberRange::Bound>& bound, const NumberRange::Bound& other, int sign) {
    const int order = bound ? compare(other.value, bound->value) * sign : 1;
    if (order > 0 || (order == 0 && other.open)) bound = other;
}

// The formats of a schema; parts of allOf may each name one.
std::vector<std::string> formats(const Json& schema) {
    std::vector<std::string> out;
    const Json format = schema.value("format", Json::array());
    for (const Json& each : format.is_array() ? format : Json::array({format}))
        if (each.is_string()) out.push_back(each);
    return out;
}

}  // namespace

// In draft 4 and OpenAPI 3.0 an exclusive bound is a boolean that modifies the inclusive one.
Status SchemaConverter::narrow(NumberRange& range, const Json& schema, const char* key,
                               const std::string& path) {
    const std::string name = key;
    if (!schema.contains(key) || (name.starts_with("exclusive") && schema[key].is_boolean())) return {};
    const std::optional<Decimal> value = decimal_of(schema[key]);
    if (!value) return error("{}/{}: takes a number, not {}", path, key, printable(schema[key].dump()));
    const int sign = name.ends_with("inimum") ? 1 : -1;
    if (value->whole.size() > kMostDigits || value->fraction.size() > kMostDigits) {
        // Numbers that are written never have as many digits.
        const bool outside = value->whole.size() > kMostDigits && value->negative == (sign > 0);
        return outside ? Status() : not_held(member_pointer(path, key), "it has too many digits");
    }
    const char* const exclusive = sign > 0 ? "exclusiveMinimum" : "exclusiveMaximum";
    const bool open = name == exclusive || schema.value(exclusive, Json()) == true;
    take_bound(sign > 0 ? range.low : range.high, {*value, open}, sign);
    return {};
}

Result<NumberRange> SchemaConverter::range(const Json& schema, const std::string& path) {
    NumberRange out;
    for (const char* key : {"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"})
        RL_TRY(narrow(out, schema, key, path));
    for (const std::string& name : formats(schema)) {
        const std::optional<NumberRange> kept = format_range(name);
        // Formats of strings do not constrain numbers.
        if (!kept && !is_free_format(name) && !format_pattern(name))
            RL_TRY(not_held(member_pointer(path, "format"), "the format is " + name));
        if (kept) take_bound(out.low, *kept->low, 1);
        if (kept && kept->high) take_bound(out.high, *kept->high, -1);
    }
    return out;
}

SchemaConverter::Text SchemaConverter::number(const std::string& type, const Json& schema,
                                              const std::string& path) {
    const std::vector<std::string> names = formats(schema);
    // A format such as int32 makes a number an integer.
    const bool whole = type == "integer" || std::any_of(names.begin(), names.end(), [](const auto& name) {
                           return format_range(name).has_value();
                       });
    const NumberRange bounds = RL_TRY(range(schema, path));
    if (bounds.empty()) return nothing("{}: no {} lies between the bounds", path, type);
    if (schema.contains("multipleOf")) {
        const std::optional<Decimal> step = decimal_of(schema["multipleOf"]);
        if (!step || step->negative || step->is_zero())
            return error("{}/multipleOf: takes a number above 0, not {}", path,
                         printable(schema["multipleOf"].dump()));
        const std::optional<std::string> rule = multiples_rule(rules_, bounds, *step, whole);
        if (rule && rule->empty())
            return nothing("{}: no multiple of {} lies between the bounds", path, step->text());
        if (rule) return rules_.add(type, *rule);
        RL_TRY(not_held(member_pointer(path, "multipleOf"), "it takes too many rules"));
    }
    if (!bounds.low && !bounds.high) return rules_.use(type);
    const std::string rule = whole ? integer_rule(rules_, bounds) : number_rule(rules_, bounds);
    if (rule.empty()) return nothing("{}: no {} lies between the bounds", path, type);
    return rules_.add(type, rule);
}

}  // namespace redline
