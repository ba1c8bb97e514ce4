// The small model that comes with the program: what `run`, `chat` and `bench` use when none is named.
#pragma once

#include "base/result.h"

#include <string>

namespace redline::cli {

// Its file: beside an installed program in share/redline, or in models/demo of the source tree. An error that
// says where it was looked for when it is in none of them.
Result<std::string> find_demo_model();

// Puts the demo model's file in place of a path that is empty, and says so.
Status take_demo_model(std::string& path);

}  // namespace redline::cli
