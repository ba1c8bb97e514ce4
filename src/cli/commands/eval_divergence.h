// The results of comparing a run with a base, as redline eval prints them.
#pragma once

#include "json/json.h"
#include "measure/base_run.h"

namespace redline::cli {

std::string divergence_text(const Divergence& divergence);
Json divergence_json(const Divergence& divergence);

}  // namespace redline::cli
