// The report of `info` on how `run` would place a model on a device.
#pragma once

#include "host/load_plan.h"
#include "json/json.h"

namespace redline::cli {

// Adds "split" where there would be one, "refusal", where nothing that was asked for fits, or, of a whole
// model, "expected_tokens_per_second" and "most_tokens_per_second" (null: not known). `loaded` has the device
// open.
void add_decision(LoadedModel& loaded, const HostOptions& options, const SessionOptions& session,
                  Json& memory);
// ", about 12.3 tok/s expected, at most 20.1 by the measured bandwidth", as far as that is known.
std::string speed_text(const Json& memory);
// A line each: the split, its parts' memory, and what else `run` would say; none where all is on the device.
std::vector<std::string> split_lines(const Json& memory);

// The step of one token at the end of the context, as it would be recorded, each part for its device.
Result<Json> plan_json(LoadedModel& loaded, const HostOptions& options, uint64_t context);
std::string plan_text(const Json& plan);

}  // namespace redline::cli
