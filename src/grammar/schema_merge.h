// Joins schemas that must all hold, as allOf does, keyword by keyword.
#pragma once

#include "base/result.h"

#include <nlohmann/json.hpp>

#include <string>

namespace redline {

// Two schemas, both objects, as one. Keywords that cannot be joined are an error that names them.
Result<nlohmann::ordered_json> merge_schemas(nlohmann::ordered_json a, const nlohmann::ordered_json& b,
                                             const std::string& path);

}  // namespace redline
