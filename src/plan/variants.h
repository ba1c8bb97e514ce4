// What a kernel is free to choose: numbers that change how fast it is, and not how exact. Its variants are
// the values of these. A measurement on a device (run/tune.h) finds which of them to take there.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace redline {

// Steps by how many rows they have: a kernel computes each class in a way of its own.
enum class RowClass : uint8_t { one, few, some, many };
constexpr RowClass kRowClassList[] = {RowClass::one, RowClass::few, RowClass::some, RowClass::many};
constexpr RowClass row_class_of(uint64_t rows) {
    return rows <= 1     ? RowClass::one
           : rows <= 8   ? RowClass::few
           : rows <= 128 ? RowClass::some
                         : RowClass::many;
}
std::string_view row_class_name(RowClass rows);

struct Choice {
    std::string name;              // "threads"
    std::vector<uint32_t> values;  // the first is taken unless another was measured to be better
    bool any = false;              // what is not among them is possible as well, but for 0
};
using Choices = std::vector<Choice>;
// `first`, then what of `others` is another number.
Choice choice(std::string name, uint32_t first, std::vector<uint32_t> others, bool any = false);

// Values by the names of their choices; of a choice that is not in it, the first.
using Variant = std::map<std::string, uint32_t>;
// "threads 256, ahead 2"; "default" without any.
std::string variant_text(const Variant& variant);
// What of it is among the choices, and not their first value anyway.
Variant allowed(const Variant& variant, const Choices& choices);

// What of it begins with `prefix`, by the rest of the name: a part's, of a kernel that is made of several.
Variant part_of(const Variant& variant, std::string_view prefix);

// Of a device, by kernel_key() and class of rows.
using Variants = std::map<std::pair<std::string, RowClass>, Variant>;

}  // namespace redline
