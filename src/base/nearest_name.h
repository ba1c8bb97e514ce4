// What a misspelt name was meant to be.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace redline {

// Of `names` the one that is nearest to `wanted` by edits, or the shortest that begins so; empty when none is
// near.
std::string nearest_name(std::string_view wanted, const std::vector<std::string>& names);

}  // namespace redline
