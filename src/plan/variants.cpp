#include "plan/variants.h"

#include <fmt/format.h>

#include <algorithm>

namespace redline {

std::string_view row_class_name(RowClass rows) {
    constexpr std::string_view kNames[] = {"1 row", "2 to 8 rows", "9 to 128 rows", "more rows"};
    return kNames[size_t(rows)];
}

Choice choice(std::string name, uint32_t first, std::vector<uint32_t> others, bool any) {
    Choice all{std::move(name), {first}, any};
    for (const uint32_t other : others)
        if (std::find(all.values.begin(), all.values.end(), other) == all.values.end())
            all.values.push_back(other);
    return all;
}

std::string variant_text(const Variant& variant) {
    std::string text;
    for (const auto& [name, value] : variant)
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value);
    return text.empty() ? "default" : text;
}

Variant allowed(const Variant& variant, const Choices& choices) {
    Variant out;
    for (const Choice& one : choices) {
        const auto found = variant.find(one.name);
        if (found == variant.end() || found->second == one.values.front()) continue;
        const bool listed =
            std::find(one.values.begin(), one.values.end(), found->second) != one.values.end();
        if (listed || (one.any && found->second > 0)) out.insert(*found);
    }
    return out;
}

Variant part_of(const Variant& variant, std::string_view prefix) {
    Variant part;
    for (const auto& [name, value] : variant)
        if (name.starts_with(prefix)) part[name.substr(prefix.size())] = value;
    return part;
}

}  // namespace redline
