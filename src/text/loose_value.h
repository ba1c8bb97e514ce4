// Values as models write them in calls that are no JSON: f(city="Kiel", days=[1, 2]) and
// {city:<|"|>Kiel<|"|>,days:[1,2]}.
#pragma once

#include "json/json.h"

#include <optional>
#include <string_view>

namespace redline {

// Reads one value from `text` at `at` and moves `at` behind it: a number, a text in ', " or <|"|>, a list, an
// object whose keys may be bare words, true, false, null and Python's words for these. Nothing where there is
// none, or where it is nested too deep.
std::optional<Json> read_loose_value(std::string_view text, size_t& at);

// Reads "name=value, name=value" up to `close`, and moves `at` behind that.
std::optional<Json> read_loose_arguments(std::string_view text, size_t& at, char close);

// The end of the JSON object or list that begins at `at`; npos when it does not end or is nested deeper.
size_t json_end(std::string_view text, size_t at, int deepest = 64);

}  // namespace redline
