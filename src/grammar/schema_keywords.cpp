#include "grammar/schema_keywords.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

namespace redline {
namespace {

constexpr std::string_view kHeld[] = {"$ref",
                                      "allOf",
                                      "anyOf",
                                      "oneOf",
                                      "not",
                                      "const",
                                      "enum",
                                      "type",
                                      "nullable",
                                      "properties",
                                      "required",
                                      "additionalProperties",
                                      "patternProperties",
                                      "propertyNames",
                                      "minProperties",
                                      "maxProperties",
                                      "unevaluatedProperties",
                                      "items",
                                      "prefixItems",
                                      "additionalItems",
                                      "unevaluatedItems",
                                      "minItems",
                                      "maxItems",
                                      "uniqueItems",
                                      "minLength",
                                      "maxLength",
                                      "pattern",
                                      "format",
                                      "minimum",
                                      "maximum",
                                      "exclusiveMinimum",
                                      "exclusiveMaximum",
                                      "multipleOf"};
constexpr std::string_view kNotHeld[] = {
    "if",           "contains",    "minContains",   "maxContains", "dependentRequired", "dependentSchemas",
    "dependencies", "$dynamicRef", "$recursiveRef", "divisibleBy", "disallow",          "extends"};
constexpr std::string_view kDescriptive[] = {"title",         "description",      "default",
                                             "example",       "examples",         "deprecated",
                                             "readOnly",      "writeOnly",        "contentEncoding",
                                             "contentSchema", "contentMediaType", "definitions",
                                             "discriminator", "externalDocs",     "then",
                                             "else"};

template <typename List>
bool has(const List& list, std::string_view name) {
    return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

std::string lower(std::string_view text) {
    std::string out(text);
    for (char& c : out)
        if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
    return out;
}

// True when adding, removing or replacing one letter, or swapping two, turns one word into the other.
bool is_slip(std::string_view a, std::string_view b) {
    if (a.size() > b.size()) std::swap(a, b);
    if (b.size() - a.size() > 1) return false;
    const auto differ = std::mismatch(a.begin(), a.end(), b.begin());
    const auto at = size_t(differ.first - a.begin());
    if (a.size() < b.size()) return a.substr(at) == b.substr(at + 1);
    if (at == a.size() || a.substr(at + 1) == b.substr(at + 1)) return true;
    return at + 1 < a.size() && a[at] == b[at + 1] && a[at + 1] == b[at] &&
           a.substr(at + 2) == b.substr(at + 2);
}

}  // namespace

bool is_held(std::string_view keyword) {
    return has(kHeld, keyword) || keyword.starts_with('\x01');
}

std::optional<std::string> constrains(std::string_view keyword) {
    constexpr size_t kShortest = 5;  // of words that are checked for a misspelling
    if (has(kNotHeld, keyword)) return "";
    if (has(kDescriptive, keyword) || keyword.starts_with("$") || keyword.starts_with("x-")) return {};
    const std::string word = lower(keyword);
    for (const std::string_view held : kHeld)
        if (held.size() >= kShortest && is_slip(word, lower(held)))
            return fmt::format("there is no such keyword; {} is one", held);
    return {};
}

}  // namespace redline
