// Opening a device with the wishes of a user.
#pragma once

#include "devices/device_choice.h"
#include "host/host_options.h"

namespace redline {

// Opens it with the tuned variants of its kernels. The error for a device that was asked for has
// Cause::no_device.
Result<std::unique_ptr<Backend>> open_device(const DeviceChoice& choice, const HostOptions& options);
// Opens the chosen device or, where nobody asked for it and it does not open, the next best one, to which
// `choice` changes. Notes name the GPUs of this machine that cannot be used.
Result<std::unique_ptr<Backend>> open_best(DeviceChoice& choice, const HostOptions& options);

}  // namespace redline
