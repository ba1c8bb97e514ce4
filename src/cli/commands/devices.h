// Opening a device with the options of a command.
#pragma once

#include "cli/options/model_options.h"
#include "devices/device_choice.h"
#include "doctor/vulkan_drivers.h"

namespace redline::cli {

// Where what is known of devices is kept between runs; empty when the environment names no home.
std::string cache_folder();
// By the environment.
NamedDrivers named_drivers();
// Of a device that was asked for an error is of Cause::no_device.
Result<std::unique_ptr<Backend>> open_device(const DeviceChoice& choice, const ModelOptions& options);
// The same, and where nobody asked for the device and it does not open, the next best one is taken. What of
// this machine's GPUs cannot be used is said.
Result<std::unique_ptr<Backend>> open_best(DeviceChoice& choice, const ModelOptions& options);

}  // namespace redline::cli
