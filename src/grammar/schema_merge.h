// Joins schemas that must all hold, as allOf does, keyword by keyword.
#pragma once

#include "base/result.h"
#include "json/json.h"

#include <string>

namespace redline {

// Two schemas, both objects, as one; where they exclude each other, one that allows nothing and says why.
// Keywords that cannot be joined are an error that names them.
Result<Json> merge_schemas(Json a, const Json& b, const std::string& path);
// A schema whose references and parts of allOf are written out, with unevaluatedProperties and
// unevaluatedItems as the keywords that ask the same of properties and items which this schema does not list:
// what stands beside it, in another part of allOf, lists nothing for it.
Json close_unevaluated(Json schema);
// A schema that allows nothing.
Json nothing_schema(const std::string& why);

}  // namespace redline
