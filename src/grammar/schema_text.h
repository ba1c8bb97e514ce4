// Parses the text of a JSON schema.
#pragma once

#include "base/result.h"
#include "json/json.h"

#include <string_view>

namespace redline {

// Errors give line and column.
Result<Json> parse_schema(std::string_view text);

}  // namespace redline
