// The options of commands that may guess how a text goes on.
#pragma once

#include "cli/options/options.h"
#include "host/open_speculation.h"

namespace redline::cli {

// --spec-type, --spec-draft-model and --spec-draft-n-max.
void add_speculation_options(Options& options, SpeculationOptions& speculation);

}  // namespace redline::cli
