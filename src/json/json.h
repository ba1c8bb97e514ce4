// JSON, whose objects keep the order of their keys. The library's code is compiled once, in json.cpp:
// compiled in each file that reads or writes JSON, it takes more of a build's time than all of the rest of
// them.
#pragma once

#include <nlohmann/json.hpp>

#include <string_view>

extern template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace redline {

using Json = nlohmann::ordered_json;

// The value of a text; is_discarded() tells that it is no JSON.
Json read_json(std::string_view text);

// The same, for who says what is wrong. Throws Json::parse_error.
Json parse_json(std::string_view text);

}  // namespace redline
