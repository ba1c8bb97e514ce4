// Merges schemas that must all hold, as in allOf, keyword by keyword.
#pragma once

#include "base/result.h"
#include "json/json.h"

#include <string>

namespace redline {

// Merges two schemas, both objects; where they exclude each other, the result allows nothing and says why.
// Keywords that cannot be merged are an error that names them.
Result<Json> merge_schemas(Json a, const Json& b, const std::string& path);
// Rewrites a schema whose references and parts of allOf are resolved: unevaluatedProperties and
// unevaluatedItems become the keywords for properties and items that this schema does not list, since another
// part of allOf lists nothing for it.
Json close_unevaluated(Json schema);
// A schema that allows nothing.
Json nothing_schema(const std::string& why);

}  // namespace redline
