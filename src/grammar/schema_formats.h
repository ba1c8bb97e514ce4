// The formats of strings and numbers that JSON schemas name: those of the standard, of OpenAPI, and those
// that pydantic, zod and schemars write.
#pragma once

#include "base/result.h"
#include "grammar/number_rules.h"

#include <string_view>

namespace redline {

// The pattern of a format; empty when the format is not known.
std::optional<std::string> format_pattern(std::string_view name);
// The most characters of a string of that format; empty: any number.
std::optional<uint64_t> format_most(std::string_view name);
// The part of a format that its pattern does not enforce; empty: there is none.
std::string_view format_rest(std::string_view name);
// True for formats that any string has, such as those about display, storage or meaning.
bool is_free_format(std::string_view name);
// The range of the integers of a format such as int32; empty where it has none.
std::optional<NumberRange> format_range(std::string_view name);

}  // namespace redline
