// Joins schemas that must all hold, as allOf does, keyword by keyword.
#pragma once

#include "base/result.h"
#include "json/json.h"

#include <string>

namespace redline {

// Two schemas, both objects, as one; where they exclude each other, one that allows nothing and says why.
// Keywords that cannot be joined are an error that names them.
Result<Json> merge_schemas(Json a, const Json& b, const std::string& path);
// A schema that allows nothing.
Json nothing_schema(const std::string& why);

}  // namespace redline
