// Values as models write them in calls that are no JSON, f(city="Kiel", days=[1, 2]) and
// {city:<|"|>Kiel<|"|>,days:[1,2]}, and JSON with slips.
#pragma once

#include "json/json.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redline {

// Reads one of Gemma's values from `text` at `at` and moves `at` behind it: a number, a text in <|"|>, a
// list, an object whose keys are bare, true, false, null and Python's words for these. Nothing where there is
// none, or where it is nested too deep.
std::optional<Json> read_gemma_value(std::string_view text, size_t& at);

// Reads "name=value, name=value" with Python's values up to `close`, and moves `at` behind that.
std::optional<Json> read_loose_arguments(std::string_view text, size_t& at, char close);

struct Mending {
    std::vector<std::string> slips;  // that were mended
    std::string problem;             // why nothing was read, where that is known
};

// JSON with slips that can only be meant in one way: raw line ends in texts, escapes that JSON does not know,
// single quotes, keys without quotes, Python's words, commas behind the last value, brackets that a mark
// which begins with "<" closes.
std::optional<Json> read_mended_json(std::string_view text, size_t& at, Mending& mending);

// The end of the JSON object or list that begins at `at`; npos when it does not end or is nested deeper.
size_t json_end(std::string_view text, size_t at, int deepest = 64);

}  // namespace redline
