// Values of a call's parameters that stand between marks, without quotes: their schema tells texts from
// others.
#pragma once

#include "json/json.h"

#include <string_view>

namespace redline {

// The offered function of this name, which may stand in {"type": "function", "function": ...} or alone; null:
// there is none.
const Json* find_function(const Json& tools, std::string_view name);

// True when a call of the function means something without arguments.
bool needs_no_arguments(const Json& function);

// The schemas of the function's parameters; null: they are not known.
const Json* find_properties(const Json& function);

// A text where the schema knows nothing else; else the JSON or Python's word that it is, if the schema has
// its type. `function` may be null.
Json parameter_value(const Json* function, std::string_view key, std::string_view text);

// True when the schema allows a value of the type that such a text is read as.
bool fits_parameter(const Json* function, std::string_view key, std::string_view text);

bool is_required(const Json& function, std::string_view key);

}  // namespace redline
