// What redline tune has found, as other commands use it: variants of kernels, and which backend of a card is
// the faster one for a model.
#pragma once

#include "cli/options/model_options.h"
#include "devices/device_choice.h"
#include "measure/tune.h"

#include <functional>

namespace redline::cli {

// The backend computes as was found to be fast on it, unless the options want defaults. A file that is
// damaged is said once.
void use_tuned(Backend& backend, const ModelOptions& options);

// "linear Q4_K 4096 x 4096, 1 row: blocks 264" for each variant that the model's plans use and that is not
// the default.
std::vector<std::string> tuned_kernels_of(const Model& model, Backend& backend, const EngineOptions& options);

// One line for all variants that computed wrongly when they were timed; details for the curious.
void note_wrong_variants(std::span<const TunedKernel> kernels, const std::string& device);

struct ModelSpeed {
    double prompt = 0.0, generation = 0.0;  // tokens per second
    // Of a prompt of 512 and 128 tokens made.
    double seconds() const { return 512 / prompt + 128 / generation; }
    std::string text() const;
};
Status keep_speed(const std::string& model, const DeviceListing& device, const ModelSpeed& speed);
using FindDevices = std::function<std::vector<UsableDevice>()>;
// Where more than one backend was measured with this model on the card of `usual`, the fastest one; the
// choice says so. Devices are only looked for where something was measured.
DeviceChoice faster_choice(const std::string& model, DeviceChoice usual,
                           const FindDevices& find = usable_devices);

// `usual`, then what else drives its card, as the address on the bus tells.
std::vector<DeviceChoice> ways_to_card(const DeviceChoice& usual, const FindDevices& find = usable_devices);
// Of a choice; the first that can be used where it names none.
std::optional<DeviceListing> listing_of(const DeviceChoice& choice, const FindDevices& find = usable_devices);

}  // namespace redline::cli
