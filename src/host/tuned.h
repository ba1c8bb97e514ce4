// The findings of redline tune in use: variants of kernels, and the backend of a card that is the faster one
// for a model.
#pragma once

#include "devices/device_choice.h"
#include "host/host_options.h"
#include "measure/tune.h"

#include <functional>

namespace redline {

// Has the backend compute in the variants that were measured to be fast on it, unless the options want the
// defaults. A damaged file is noted once.
void use_tuned(Backend& backend, const HostOptions& options);
// Has kernels that were found faster with activations in int8 run by default, if the options want it.
void use_precise(Backend& backend, const HostOptions& options);

// "linear Q4_K 4096 x 4096, 1 row: blocks 264" for each variant that the model's plans use and that is not
// the default.
std::vector<std::string> tuned_kernels_of(const Model& model, Backend& backend, const EngineOptions& options);

// Notes in one line the variants that computed wrongly when they were timed; each of them is a detail.
void note_wrong_variants(std::span<const TunedKernel> kernels, const std::string& device, Notes& notes);

struct ModelSpeed {
    double prompt = 0.0, generation = 0.0;  // tokens per second
    // The time of a prompt of 512 tokens and an answer of 128.
    double seconds() const { return 512 / prompt + 128 / generation; }
    std::string text() const;
};
// Keeps the speed of a model's file on a device for faster_choice().
Status keep_speed(const std::string& model, const DeviceListing& device, const ModelSpeed& speed,
                  const std::string& cache_folder);
using FindDevices = std::function<std::vector<UsableDevice>()>;
// The fastest backend of the card of `usual`, if more than one was measured there with this model; the choice
// says so. Devices are looked for only where something was measured.
DeviceChoice faster_choice(const std::string& model, DeviceChoice usual, const std::string& cache_folder,
                           const FindDevices& find = usable_devices);

// `usual`, and then the other backends that drive the same card, by its address on the bus.
std::vector<DeviceChoice> ways_to_card(const DeviceChoice& usual, const FindDevices& find = usable_devices);
// The listing of the chosen device, or of the backend's first where the choice names none.
std::optional<DeviceListing> listing_of(const DeviceChoice& choice, const FindDevices& find = usable_devices);

}  // namespace redline
