// Opening a device with the options of a command.
#pragma once

#include "cli/options/model_options.h"
#include "plan/device_choice.h"

namespace redline::cli {

// Where what is known of devices is kept between runs; empty when the environment names no home.
std::string cache_folder();
Result<std::unique_ptr<Backend>> open_device(const DeviceChoice& choice, const ModelOptions& options);

}  // namespace redline::cli
