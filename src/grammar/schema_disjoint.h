// Whether the branches of a schema's oneOf exclude each other, as far as that can be told from their
// keywords.
#pragma once

#include "json/json.h"

#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace redline {

// A schema with what it refers to and all parts of allOf in one; nothing where that cannot be done.
using ResolveSchema = std::function<std::optional<Json>(const Json&)>;

// The first two schemas where a text that the grammar of one allows may be valid for the other, too. That
// grammar writes no properties but those listed, and others only where the schema allows them by name.
std::optional<std::pair<size_t, size_t>> overlap(const std::vector<Json>& schemas,
                                                 const ResolveSchema& resolve);

}  // namespace redline
