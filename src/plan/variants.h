// The choices of a kernel: numbers that change its speed, and rarely its results' precision, which
// Kernel::precision() follows. A variant is a set of values for them. A measurement on a device
// (measure/tune.h) finds the best one there.
#pragma once

#include <array>
#include <cstdint>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace redline {

// Classes of steps by their number of rows: a kernel may compute each class in another way.
enum class RowClass : uint8_t { one, few, some, many };
constexpr RowClass kRowClassList[] = {RowClass::one, RowClass::few, RowClass::some, RowClass::many};
constexpr RowClass row_class_of(uint64_t rows) {
    return rows <= 1     ? RowClass::one
           : rows <= 8   ? RowClass::few
           : rows <= 128 ? RowClass::some
                         : RowClass::many;
}
std::string_view row_class_name(RowClass rows);
// Numbers of rows of a class between which its crossovers lie, in rising order.
std::span<const uint32_t> widths_of(RowClass rows);

// A default that stands in a table of defaults, with why it does.
struct Default {
    uint32_t value = 0;
    std::string_view devices = {};  // the class of devices: "HIP, waves of 64"
    std::string_view source = {};   // "measured on an H200", "counted for an MI300X"
    std::string_view date = {};     // "2026-11-30"
};

struct Choice {
    std::string name;              // "threads"
    std::vector<uint32_t> values;  // the first is the default
    bool any = false;              // other values, except 0, are possible as well
    // The values are numbers of rows up to which steps go one way, and above which they go another: such a
    // choice is timed at all widths_of() its class. 0: the number follows from other choices and the weight.
    bool crossover = false;
    Default usual = {};  // where the default stands in a table: the row
};
using Choices = std::vector<Choice>;
// `first`, then those of `others` that differ from it.
Choice choice(std::string name, uint32_t first, std::vector<uint32_t> others, bool any = false);
// The same of a default that stands in a table.
Choice choice(std::string name, const Default& first, std::vector<uint32_t> others);
Choice crossover(std::string name, const Default& first, std::vector<uint32_t> others);

// A line for people that says what a choice is about, by the end of its name ("gated_threads" ends with
// "threads"); empty: unknown.
std::string_view choice_meaning(std::string_view name);

// Values by the names of their choices; a choice without an entry has its first value.
using Variant = std::map<std::string, uint32_t>;
// "threads 256, ahead 2"; "default" without any.
std::string variant_text(const Variant& variant);
// The entries that name a choice, with an allowed value that is not the default.
Variant allowed(const Variant& variant, const Choices& choices);

// The entries whose names begin with `prefix`, under the rest of the name: the variant of one part of a
// composite kernel.
Variant part_of(const Variant& variant, std::string_view prefix);

// The variant of one kernel in each class of rows.
using TakenVariants = std::array<Variant, std::size(kRowClassList)>;
// "2 to 8 rows: queries 4, 9 to 128 rows: queries 4"; empty: the default in all classes.
std::string taken_text(const TakenVariants& taken);
// Variants that may be right where the default is computed wrongly: of each choice two other values, since a
// fault of a compiler is mostly that of one. None rounds activations more.
std::vector<Variant> other_variants(std::span<const Choices> choices);

// The variants of a device, by kernel_key() and class of rows.
using Variants = std::map<std::pair<std::string, RowClass>, Variant>;

}  // namespace redline
