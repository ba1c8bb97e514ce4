// redline tune --list: what can be chosen of a model's kernels on a device.
#pragma once

#include "json/json.h"
#include "measure/tune.h"

namespace redline::cli {

using TunedTimes = std::map<Variants::key_type, KeptTimes>;

// A table of kernels and their choices, with what was measured here, and behind it what each choice is about
// and why its defaults are what they are.
std::string choices_text(const std::string& id, const DeviceInfo& device, std::span<const KernelChoices> all,
                         const TunedTimes& times);
Json choices_json(const std::string& id, const DeviceInfo& device, std::span<const KernelChoices> all,
                  const TunedTimes& times);

}  // namespace redline::cli
