// The formats of strings and numbers that JSON schemas name: those of the standard, of OpenAPI, and of what
// pydantic, zod and schemars write.
#pragma once

#include "base/result.h"
#include "grammar/number_rules.h"

#include <string_view>

namespace redline {

// The pattern of a format; nothing where it is not known.
std::optional<std::string> format_pattern(std::string_view name);
// The most characters of a string of that format; nothing: any number.
std::optional<uint64_t> format_most(std::string_view name);
// The part of a format that its pattern does not hold; empty: there is none.
std::string_view format_rest(std::string_view name);
// Any string has such a format: how it is shown or stored, or where it points to, is not seen in the text.
bool is_free_format(std::string_view name);
// The range of the integers of a format such as int32; nothing where it has none.
std::optional<NumberRange> format_range(std::string_view name);

}  // namespace redline
