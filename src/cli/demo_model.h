// The small model that comes with the program: what commands use when none is named.
#pragma once

#include "cli/options/model_options.h"

#include <string>

namespace redline::cli {

// Its file: beside an installed program in share/redline, or in models/demo of the source tree. An error that
// says where it was looked for when it is in none of them.
Result<std::string> find_demo_model();

// Puts the demo model's file in place of a path that is empty.
Status take_demo_model(ModelOptions& options);
// Says once that it was taken. For when the model is going to be used: what is wrong with a prompt or an
// option is said before.
void note_demo_model(const ModelOptions& options);

}  // namespace redline::cli
