// Finds out whether the branches of a schema's oneOf exclude each other, as far as their keywords show.
#pragma once

#include "json/json.h"

#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace redline {

// Returns a schema with its references resolved and all parts of allOf merged; empty where that fails.
using ResolveSchema = std::function<std::optional<Json>(const Json&)>;

// The first two schemas where a text that the grammar of one allows may also be valid for the other. That
// grammar writes only listed properties, and others only where the schema allows them by name.
std::optional<std::pair<size_t, size_t>> overlap(const std::vector<Json>& schemas,
                                                 const ResolveSchema& resolve);

}  // namespace redline
