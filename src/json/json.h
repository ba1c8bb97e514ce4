// JSON whose objects keep the order of their keys. The library is compiled once, in json.cpp: compiled in
// each file that uses JSON, it would take most of their build time.
#pragma once

#include <nlohmann/json.hpp>

#include <string_view>

extern template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace redline {

using Json = nlohmann::ordered_json;

// The value of a text; is_discarded() is true when it is not JSON.
Json read_json(std::string_view text);

// Parses a text for callers that report its faults. Throws Json::parse_error.
Json parse_json(std::string_view text);

}  // namespace redline
