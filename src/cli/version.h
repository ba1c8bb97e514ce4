// Which program this is.
#pragma once

#include <string>
#include <string_view>

namespace redline::cli {

std::string version();   // "0.1.0"
std::string commit();    // of the source it was built from, or "unknown"
std::string compiler();  // "gcc 12.2.0"

// The text of build_lacks() for a screen: many kinds of GPU are told by their families and their number.
// `devices --json` names each.
std::string short_lacks(std::string_view lacks);

}  // namespace redline::cli
