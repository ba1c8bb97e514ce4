// Guesses the name that was meant by a misspelt one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace redline {

// The name in `names` with the fewest edits from `wanted`, or the shortest that begins with it; empty when
// none is near.
std::string nearest_name(std::string_view wanted, const std::vector<std::string>& names);

}  // namespace redline
