// What runs where, and what it takes, decided and said before a byte of weights is read.
#pragma once

#include "cli/options/model_options.h"

namespace redline::cli {

// For a session like this one: that the model fits the device; or, where it does not or options ask for it,
// which layers and experts the CPU takes (then LoadedModel::placements). An error has the numbers and what
// would fit.
Status plan_load(LoadedModel& loaded, const ModelOptions& options, const SessionOptions& session);

// Whether options ask for parts of the model on the CPU beside the device.
bool asks_split(const ModelOptions& options, const Model& model);
// For commands that do not split a model: says so where options ask for it.
void note_unsplit(const ModelOptions& options, const Model& model, const std::string& device);

// "plan: 12/32 layers on vulkan (...), 20 and the experts of 12 on cpu (...), KV cache f16 4096 tokens
// 512.0 MiB"; `cache` in bytes.
std::string plan_line(const LoadedModel& loaded, uint64_t context, uint64_t cache);

}  // namespace redline::cli
