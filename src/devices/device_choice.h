// Opens backends, and chooses a device from a name for it, or the best one, and says why.
#pragma once

#include "plan/backend.h"

namespace redline {

// An unknown name is an error that lists the known ones.
Result<std::unique_ptr<Backend>> open_backend(std::string_view name, const BackendOptions& options);

struct DeviceChoice {
    std::string backend;
    std::string device;  // which of the backend's; empty: its best
    std::string why;     // in a few words; empty when it was asked for
};

// The first is taken before the others by who has no wish.
std::vector<const BackendEntry*> backends_by_preference();

// A device that can be used and is more than a stand-in computing on the CPU.
struct UsableDevice {
    DeviceListing listing;
    DeviceChoice choice;
};
std::vector<UsableDevice> usable_devices();

// `wanted`: empty (always has an answer), "gpu", the name of a backend, "vulkan:1", or part of a device's
// name. What is not there is an error of Cause::no_device.
Result<DeviceChoice> choose_device(const std::string& wanted);
// For who has no wish, when what was chosen does not open: the best of the backends behind it. None is behind
// the CPU.
std::optional<DeviceChoice> next_choice(const DeviceChoice& failed);
// A sentence for each device that would be taken before the chosen backend's if it did not lack something.
std::vector<std::string> passed_over(const DeviceChoice& choice);

// Tokens read at a time, if not told: 512, and on cards with at least 16 GB of their own 1024.
uint32_t usual_batch(const DeviceInfo& device);

}  // namespace redline
