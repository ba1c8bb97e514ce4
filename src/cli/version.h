// Which program this is.
#pragma once

#include <string>

namespace redline::cli {

std::string version();   // "0.1.0"
std::string commit();    // of the source it was built from, or "unknown"
std::string compiler();  // "gcc 12.2.0"

}  // namespace redline::cli
