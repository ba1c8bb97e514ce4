// Opens backends, chooses a device by name or the best one, and gives the reason.
#pragma once

#include "plan/backend.h"

namespace redline {

// An unknown name is an error that lists the known ones.
Result<std::unique_ptr<Backend>> open_backend(std::string_view name, const BackendOptions& options);

struct DeviceChoice {
    std::string backend;
    std::string device;  // one of the backend's; empty: its best
    std::string why;     // the reason in a few words; empty when the device was asked for
};

// By preference; the first usable one is the default.
std::vector<const BackendEntry*> backends_by_preference();

// A device that can be used, and is not a driver that computes on the CPU.
struct UsableDevice {
    DeviceListing listing;
    DeviceChoice choice;
};
std::vector<UsableDevice> usable_devices();

// `wanted`: empty (always finds a device), "gpu", the name of a backend, "vulkan:1", or part of a device's
// name. A device that does not exist is an error of Cause::no_device.
Result<DeviceChoice> choose_device(const std::string& wanted);
// When the default choice cannot be opened: the best device of the less preferred backends. Empty after the
// CPU.
std::optional<DeviceChoice> next_choice(const DeviceChoice& failed);
// A sentence for each preferred device that was not chosen because it lacks something.
std::vector<std::string> passed_over(const DeviceChoice& choice);

// The default number of tokens read at a time: 512, and 1024 on cards with at least 16 GB of video memory.
uint32_t usual_batch(const DeviceInfo& device);

}  // namespace redline
