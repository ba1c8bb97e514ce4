// What redline tune has found, as other commands use it: variants of kernels, and which backend of a card is
// the faster one for a model.
#pragma once

#include "cli/options/model_options.h"
#include "plan/device_choice.h"

namespace redline::cli {

// The backend computes as was found to be fast on it, unless the options want defaults. A file that is
// damaged is said once.
void use_tuned(Backend& backend, const ModelOptions& options);

// "linear Q4_K 4096 x 4096, 1 row: blocks 264" for each variant that the model's plans use and that is not
// the default.
std::vector<std::string> tuned_kernels_of(const Model& model, Backend& backend, const EngineOptions& options);

struct ModelSpeed {
    double prompt = 0.0, generation = 0.0;  // tokens per second
    // Of a prompt of 512 and 128 tokens made.
    double seconds() const { return 512 / prompt + 128 / generation; }
    std::string text() const;
};
Status keep_speed(const std::string& model, const DeviceListing& device, const ModelSpeed& speed);
// Where more than one backend was measured with this model on the card of `usual`, the fastest one; the
// choice says so.
DeviceChoice faster_choice(const std::string& model, DeviceChoice usual);

// Listings of one card: by the address on its bus.
bool same_card(const DeviceListing& a, const DeviceListing& b);
// Of a choice; the first that can be used where it names none.
std::optional<DeviceListing> listing_of(const DeviceChoice& choice);

}  // namespace redline::cli
