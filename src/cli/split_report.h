// What `run` would do on a device that a model does not fit, or is not to be on whole, for `info`.
#pragma once

#include "cli/load_plan.h"
#include "json/json.h"

namespace redline::cli {

// Adds "split" where there would be one, and "refusal", where nothing that was asked for fits. `loaded` has
// the device open.
void add_split(LoadedModel& loaded, const ModelOptions& options, const SessionOptions& session, Json& memory);
// A line each: the split, its parts' memory, and what else `run` would say; none where all is on the device.
std::vector<std::string> split_lines(const Json& memory);

// The step of one token at the end of the context, as it would be recorded, each part for its device.
Result<Json> plan_json(LoadedModel& loaded, const ModelOptions& options, uint64_t context);
std::string plan_text(const Json& plan);

}  // namespace redline::cli
