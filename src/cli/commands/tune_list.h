// redline tune --list: what can be chosen of a model's kernels on a device.
#pragma once

#include "json/json.h"
#include "measure/tune.h"

namespace redline::cli {

// A table of kernels and their choices, and behind it what each choice is about.
std::string choices_text(const std::string& id, const DeviceInfo& device, std::span<const KernelChoices> all);
Json choices_json(const std::string& id, const DeviceInfo& device, std::span<const KernelChoices> all);

}  // namespace redline::cli
