// Reads the text of a JSON schema.
#pragma once

#include "base/result.h"

#include <nlohmann/json.hpp>

#include <string_view>

namespace redline {

// Errors give line and column.
Result<nlohmann::ordered_json> parse_schema(std::string_view text);

}  // namespace redline
