#include "plan/variants.h"

#include <fmt/format.h>

#include <algorithm>

namespace redline {

std::string_view row_class_name(RowClass rows) {
    constexpr std::string_view kNames[] = {"1 row", "2 to 8 rows", "9 to 128 rows", "more rows"};
    return kNames[size_t(rows)];
}

std::span<const uint32_t> widths_of(RowClass rows) {
    // Steps are recorded for powers of two.
    static constexpr uint32_t kOne[] = {1}, kFew[] = {2, 4, 8}, kSome[] = {16, 32, 64, 128}, kMany[] = {512};
    static constexpr std::span<const uint32_t> kAll[] = {kOne, kFew, kSome, kMany};
    return kAll[size_t(rows)];
}

Choice choice(std::string name, uint32_t first, std::vector<uint32_t> others, bool any) {
    Choice all{std::move(name), {first}, any};
    for (const uint32_t other : others)
        if (std::find(all.values.begin(), all.values.end(), other) == all.values.end())
            all.values.push_back(other);
    return all;
}

Choice choice(std::string name, const Default& first, std::vector<uint32_t> others) {
    Choice one = choice(std::move(name), first.value, std::move(others));
    one.usual = first;
    return one;
}

Choice crossover(std::string name, const Default& first, std::vector<uint32_t> others) {
    Choice one = choice(std::move(name), first, std::move(others));
    one.crossover = true;
    return one;
}

std::string_view choice_meaning(std::string_view name) {
    struct Meaning {
        std::string_view name, meaning;
    };
    // Longer names stand before those that they end with. Where the default is 0 the kernel goes by the op's
    // shape and the device.
    static constexpr Meaning kMeanings[] = {
        {"apart_groups", "work-groups of all rows of a block of experts, each row computed as if alone"},
        {"chosen_late", "1: the products of one row's experts choose these, and no dispatch before them"},
        {"fragment_rows", "up to so many rows matrices are filled element by element"},
        {"unsorted_rows", "up to so many rows places of experts are computed one by one, above it sorted"},
        {"vector_rows", "up to so many rows products go by vector, above it by matrix units or tiles"},
        {"alone_rows", "up to so many rows each row of a block of experts is computed as if alone"},
        {"few_rows", "up to so many rows products go to matrix units at the pace of the weights"},
        {"tile_rows", "rows of the matrix in the tile of a work-group"},
        {"tile_tokens", "tokens in the tile of a work-group"},
        {"fragments", "1: matrices of few rows are filled element by element, as the device holds them"},
        {"unpack", "1: weights are decoded to halfs in memory, and then multiplied, 0: in tiles"},
        {"streamed", "1: weights are copied to shared memory ahead, some stages at a time"},
        {"per_unit", "blocks for each multiprocessor, by which keys are split"},
        {"subgroup", "invocations of a subgroup"},
        {"threads", "invocations of a work-group"},
        {"queries", "queries that a work-group has at a time"},
        {"shares", "blocks that share the columns of a tile's product"},
        {"spread", "how far apart an expert's blocks of tokens lie in the grid"},
        {"blocks", "blocks that stride over the rows of the matrix"},
        {"groups", "work-groups that stride over the rows, or over which keys are split"},
        {"fused", "1: a chain of ops is one kernel, 0: a kernel for each"},
        {"depth", "columns of the tile of a work-group"},
        {"lanes", "lanes that share the columns of a state"},
        {"block", "rows of a head's state that a block has"},
        {"ahead", "units of weights that a lane reads before it multiplies the first"},
        {"int8", "1: activations in int8, 0: halfs, or floats without matrix units"},
        {"rows", "rows of the matrix that a subgroup has at a time"},
        {"keys", "keys that a work-group has at a time"},
        {"deep", "steps of columns that a subgroup reads ahead"},
        {"high", "matrices of rows that a subgroup has"},
    };
    for (const Meaning& row : kMeanings)
        if (name.ends_with(row.name)) return row.meaning;
    return {};
}

std::string variant_text(const Variant& variant) {
    std::string text;
    for (const auto& [name, value] : variant)
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value);
    return text.empty() ? "default" : text;
}

std::string taken_text(const TakenVariants& taken) {
    std::string text;
    for (const RowClass rows : kRowClassList)
        if (const Variant& one = taken[size_t(rows)]; !one.empty())
            text +=
                fmt::format("{}{}: {}", text.empty() ? "" : ", ", row_class_name(rows), variant_text(one));
    return text;
}

std::vector<Variant> other_variants(std::span<const Choices> choices) {
    std::vector<Variant> all;
    const auto add = [&](const std::string& name, uint32_t value) {
        const bool rounds = name.ends_with("int8") && value != 0;
        Variant one = {{name, value}};
        if (!rounds && std::ranges::find(all, one) == all.end()) all.push_back(std::move(one));
    };
    for (const Choices& of_class : choices)
        for (const Choice& one : of_class) {
            if (one.values.size() < 2) continue;
            add(one.name, one.values[1]);
            add(one.name, one.values.back());
        }
    return all;
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
