// The choice of a device from what --device says, or of the best one, and why.
#pragma once

#include "cli/options/model_options.h"

namespace redline::cli {

struct DeviceChoice {
    std::string backend;
    std::string device;  // which of the backend's; empty: its best
    std::string why;     // in a few words; empty when it was asked for
};

// `wanted`: empty, the name of a backend, "vulkan:1", or part of a device's name.
Result<DeviceChoice> choose_device(const std::string& wanted);
Result<std::unique_ptr<Backend>> open_device(const DeviceChoice& choice, const ModelOptions& options);

}  // namespace redline::cli
