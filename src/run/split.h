// A model's layers between a device and the CPU, where the device's memory is too small for all of them.
#pragma once

#include "run/engine.h"

namespace redline {

struct Split {
    uint32_t layers = 0;                // on the device: the last ones, and what follows them
    std::vector<Placement> placements;  // the CPU's part, if it has any, and the device's
    std::vector<Backend*> backends;     // of those, each once
    std::vector<MemoryNeed> needs;      // of each of these
};

// The last `layers` layers on the device, the others and the embedding on the CPU. An error where the model
// cannot be cut there.
Result<Split> split_layers(const Model& model, const EngineOptions& options, Backend& cpu, Backend& device,
                           uint32_t layers);
// Whether both parts fit. What devices offer that share the host's memory is counted once.
bool fits(const Split& split);
// The split with the most layers on the device that fits. An error with the numbers when none does.
Result<Split> most_layers(const Model& model, const EngineOptions& options, Backend& cpu, Backend& device);

// Bytes per second that a backend's device reads; 0: not known.
using Bandwidth = std::function<double(const Backend&)>;
// Tokens per second that the bandwidths of the parts' devices allow, `position` tokens into the context. 0
// where one is not known.
Result<double> most_tokens_per_second(const Model& model, const EngineOptions& options,
                                      std::span<const Placement> placements, const Bandwidth& bandwidth,
                                      uint64_t position);

}  // namespace redline
