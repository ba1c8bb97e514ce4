// Arrays: tuples, lists between limits, and sets of listed values.
#include "grammar/schema_converter.h"

#include <algorithm>
#include <bit>

namespace redline {

// Builds the items of prefixItems from the last one on, each with what may follow it. By default all are
// required.
SchemaConverter::Text SchemaConverter::array(const Json& schema, const std::string& path, size_t depth) {
    const Limits size = RL_TRY(limits(schema, "minItems", "maxItems", path));
    if (schema.value("uniqueItems", Json()) == true)
        if (const std::optional<std::string> set = RL_TRY(unique_items(schema, size, path))) return *set;
    const bool old = schema.contains("items") && schema["items"].is_array();
    const char* const prefix_key = old ? "items" : "prefixItems";
    const char* const rest_key = old ? "additionalItems" : "items";
    const std::string ws = rules_.use("ws");
    const std::string comma = ws + " \",\" " + ws + " ";
    std::vector<std::string> items;
    if (schema.contains(prefix_key)) {
        const Json& prefix = schema[prefix_key];
        if (!prefix.is_array()) return error("{}/{}: takes a list of schemas", path, prefix_key);
        for (size_t i = 0; i < prefix.size() && (!size.most || i < *size.most); ++i)
            items.push_back(
                grouped(RL_TRY(visit(prefix[i], fmt::format("{}/{}/{}", path, prefix_key, i), depth + 1))));
    }
    const uint64_t fixed = items.size();
    // unevaluatedItems applies to items that no other keyword applies to.
    const Json unevaluated = schema.value("unevaluatedItems", Json(true));
    const char* const others_key =
        schema.contains(rest_key) || unevaluated == true ? rest_key : "unevaluatedItems";
    const bool closed = schema.contains(others_key) ? allows_nothing(schema[others_key]) : fixed > 0;
    if (closed && size.least > fixed)
        return nothing("{}/minItems: {} is more than the {} items that there can be", path, size.least,
                       fixed);
    std::string tail;
    if (!closed && (!size.most || *size.most > fixed)) {
        std::string item = rules_.use("value");
        if (schema.contains(others_key))
            item = grouped(RL_TRY(visit(schema[others_key], member_pointer(path, others_key), depth + 1)));
        const uint64_t taken = std::max<uint64_t>(fixed, 1);  // the first item has no comma before it
        const auto most = size.most ? std::optional(*size.most - taken) : std::nullopt;
        tail = repeated("(" + comma + item + ")", size.least > taken ? size.least - taken : 0, most);
        if (fixed == 0) items.push_back(item);
    }
    const uint64_t least = schema.contains("minItems") || fixed == 0 ? size.least : fixed;
    for (size_t i = items.size(); i-- > 0;) {
        tail = (i > 0 ? comma : "") + items[i] + (tail.empty() ? "" : " " + tail) + (i > 0 ? "" : " " + ws);
        if (i >= least) tail = "(" + tail + ")?";
    }
    return rules_.add("array", "\"[\" " + ws + (tail.empty() ? "" : " " + tail) + " \"]\"");
}

// An array without duplicate items; empty where it needs no special rule.
Result<std::optional<std::string>> SchemaConverter::unique_items(const Json& schema, const Limits& size,
                                                                 const std::string& path) {
    constexpr size_t kMostValues = 12;  // each subset of them is a rule
    const std::optional<std::string> none;
    if (size.most && *size.most <= 1) return none;
    const std::string pointer = member_pointer(path, "uniqueItems");
    std::vector<Json> values;
    const bool list =
        schema.contains("items") && !schema["items"].is_array() && !schema.contains("prefixItems");
    const std::optional<std::vector<Json>> listed = list ? listed_values(schema["items"]) : std::nullopt;
    if (!listed) {
        RL_TRY(not_held(pointer, "the items are not one list of values"));
        return none;
    }
    for (const Json& value : *listed)
        if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
    if (values.size() > kMostValues) {
        RL_TRY(not_held(pointer, fmt::format("there are {} values; up to {} can be told apart", values.size(),
                                             kMostValues)));
        return none;
    }
    if (size.least > values.size())
        return nothing("{}/minItems: {} is more than the {} values that there are", path, size.least,
                       values.size());
    return std::optional(subsets(values, size));
}

// A rule for each set of values used so far: the values that may come next, or the end.
std::string SchemaConverter::subsets(const std::vector<Json>& values, const Limits& size) {
    const std::string ws = rules_.use("ws");
    const std::string comma = ws + " \",\" " + ws + " ";
    std::vector<std::string> texts;
    for (const Json& value : values) texts.push_back(rules_.add("item", json_literal(value)));
    std::vector<std::string> rules(size_t(1) << values.size());
    for (size_t used = rules.size(); used-- > 0;) {
        const auto count = size_t(std::popcount(used));
        if (size.most && count > *size.most) continue;
        std::string next;
        for (size_t i = 0; i < values.size() && (!size.most || count < *size.most); ++i)
            if ((used >> i & 1) == 0)
                next += (next.empty() ? "" : " | ") + texts[i] + " " + rules[used | size_t(1) << i];
        if (!next.empty()) next = (used != 0 ? comma : "") + "(" + next + ")" + (used != 0 ? "" : " " + ws);
        if (count >= size.least) next = next.empty() ? "\"\"" : "(" + next + ")?";
        rules[used] = rules_.add("set", next);
    }
    return rules_.add("array", "\"[\" " + ws + " " + rules[0] + " \"]\"");
}

}  // namespace redline
